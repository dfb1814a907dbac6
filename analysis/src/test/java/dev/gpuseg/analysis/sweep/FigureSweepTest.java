/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Experiment.Variant;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.w3c.dom.Document;
import org.w3c.dom.Element;
import org.w3c.dom.NodeList;

@Timeout(120)
class FigureSweepTest {
    @TempDir
    private Path directory;

    private static void run(final Path out, final int threads, final int sets, final String... figures)
        throws IOException, InterruptedException {
        try (SetCounter counter = new ThreadCounter(threads)) {
            new FigureSweep(3, sets, Variant.AS_CODED, out, counter).run(List.of(figures),
                new Progress(null, "sets", 1));
        }
    }

    @Test
    void shouldWriteTheSameNumbersWithAnyNumberOfThreads() throws Exception {
        run(directory.resolve("one"), 1, 30, "8b", "9b");
        run(directory.resolve("three"), 3, 30, "8b", "9b");
        for (final String file : List.of("figure-8b.csv", "figure-9b.csv", "figure-8b.svg", "comparison.md")) {
            assertEquals(Files.readString(directory.resolve("one").resolve(file)),
                Files.readString(directory.resolve("three").resolve(file)), file);
        }
    }

    /** Eight published curves and two of ours, nine points each; every published curve has its marks. */
    @Test
    void shouldDrawEveryCurveAndEveryPublishedPoint() throws Exception {
        run(directory, 1, 10, "8b");
        final Document svg = DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(directory.resolve("figure-8b.svg").toFile());
        final NodeList curves = svg.getElementsByTagName("polyline");
        assertEquals(10, curves.getLength());
        for (int i = 0; i < curves.getLength(); i++) {
            assertEquals(9, ((Element) curves.item(i)).getAttribute("points").strip().split("\\s+").length);
        }
        final NodeList hints = svg.getElementsByTagName("title");
        assertEquals(8 * 9, hints.getLength());
        assertEquals("gcaps-suspend+gprio, published, at 0.3: 65.6", hints.item(2).getTextContent());
    }

    @Test
    void shouldUseFinishedPointsAgainAndRedoDamagedOnes() throws Exception {
        run(directory, 1, 20, "8c");
        final String before = Files.readString(directory.resolve("figure-8c.csv"));
        final Path kept = directory.resolve("points/c-1.0-seed3-n20-as-coded.csv");
        final Path damaged = directory.resolve("points/c-2.0-seed3-n20-as-coded.csv");
        final String[] lines = Files.readString(kept).split("\n");
        Files.writeString(kept, lines[0] + "\n" + lines[1].replaceAll("\\d+", "7") + "\n");
        Files.writeString(damaged, "half a li");
        run(directory, 1, 20, "8c");
        final String after = Files.readString(directory.resolve("figure-8c.csv"));
        assertTrue(after.lines().skip(2).findFirst().orElseThrow().startsWith("1.0,1.0,35.00,35.00"));
        assertEquals(before.lines().skip(3).toList(), after.lines().skip(3).toList());
    }

    /** The frontier search accepts whatever the published search accepts; both include the sets of the plain test. */
    @Test
    void shouldNeverAcceptLessWithTheFrontierSearch() throws Exception {
        run(directory, 2, 60, "9d");
        final List<String> lines = Files.readAllLines(directory.resolve("figure-9d.csv"));
        final List<String> header = List.of(lines.get(1).split(","));
        for (final String line : lines.subList(2, lines.size())) {
            final String[] cells = line.split(",");
            for (final String base : List.of("gcaps-suspend", "gcaps-busy")) {
                final double plain = Double.parseDouble(cells[header.indexOf(base)]);
                final double published = Double.parseDouble(cells[header.indexOf(base + "+gprio")]);
                final double frontier = Double.parseDouble(cells[header.indexOf(base + "+opa")]);
                assertTrue(plain <= published && published <= frontier, line);
            }
        }
    }

    @Test
    void shouldAgreeWithThePublishedCurvesWithinSamplingError() throws Exception {
        run(directory, 2, 200, "8a", "8b", "8c", "8d", "8f");
        final Matcher summary = Pattern.compile("(\\d+) comparisons; largest difference ([\\d.]+) sigma; (\\d+) "
            + "beyond 2 sigma; "
            + "root mean square ([\\d.]+) sigma").matcher(Files.readString(directory.resolve("comparison.md")));
        assertTrue(summary.find());
        assertEquals(96, Integer.parseInt(summary.group(1)));
        assertTrue(Double.parseDouble(summary.group(2)) < 4, summary.group());
        assertTrue(Double.parseDouble(summary.group(4)) < 1.2, summary.group());
    }

    @Test
    void shouldRunWithTheValuesThatThePublishedProgramUsed() {
        assertEquals(0.5, Axis.GPU_TO_CPU.value(1.0, Variant.AS_CODED));
        assertEquals(1.0, Axis.GPU_TO_CPU.value(1.0, Variant.AS_PUBLISHED));
        assertEquals(0.2, Axis.BEST_EFFORT.value(0.3, Variant.AS_CODED));
        assertEquals(0.3, Axis.UTILISATION.value(0.3, Variant.AS_CODED));
        assertEquals(65.6, PublishedFigures.value('8', Axis.UTILISATION, 0.3, "gcaps_suspend"));
        assertEquals(14.0, PublishedFigures.value('9', Axis.BEST_EFFORT, 0.5, "gain_busy_pts"));
        assertTrue(Double.isNaN(PublishedFigures.value('8', Axis.UTILISATION, 0.35, "gcaps_suspend")));
    }

    @Test
    void shouldNameTheFiguresThatExist() {
        assertTrue(assertThrows(IllegalArgumentException.class,
            () -> Axis.ofFigure("10a")).getMessage().contains("8a..8f"));
        assertFalse(Axis.ofFigure("9c") != Axis.CPUS);
    }
}
