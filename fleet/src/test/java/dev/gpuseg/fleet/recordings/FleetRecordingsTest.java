/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.engine.TestEngine;
import dev.gpuseg.fleet.make.RecordingPlan;
import dev.gpuseg.fleet.make.SimulatedRecordings;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceStats;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Recordings of simulated robots, some of them damaged, become tables and a report. */
@Timeout(600)
class FleetRecordingsTest {
    private static final int MADE = 48;
    private static final int ROBOTS = 4;
    private static final int DAMAGED = 6;
    @TempDir
    private static Path directory;
    private static Engine engine;
    private static Path recordings;
    private static Path out;
    private static List<Outcome> outcomes;
    private static Figures figures;

    @BeforeAll
    static void makeAndConvert() throws IOException {
        engine = TestEngine.local(5);
        recordings = directory.resolve("recordings");
        final RecordingPlan plan = new RecordingPlan(MADE, ROBOTS, List.of("2.9", "2.10"), 2, 100, DAMAGED, 7);
        new SimulatedRecordings(plan, sets("autoware", "robot")).write(engine, recordings);
        Files.writeString(recordings.resolve("notes.gpuseg"), "no recording at all");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(recordings.resolve("large.gpuseg")))) {
            zip.putNextEntry(new ZipEntry("events.bin"));
            zip.putNextEntry(new ZipEntry("manifest.json"));
            zip.write(" ".repeat(64 << 20).getBytes(StandardCharsets.US_ASCII));
        }
        out = directory.resolve("out");
        final FleetRecordings fleet = new FleetRecordings(engine, out);
        outcomes = fleet.convert(recordings);
        figures = fleet.report(outcomes, null, null);
    }

    @AfterAll
    static void stop() {
        engine.close();
    }

    private static Path sets(final String... names) throws IOException {
        final Path from = Path.of(System.getProperty("gpuseg.root"), "traces", "workloads");
        final Path to = Files.createDirectories(directory.resolve("sets"));
        for (final String name : names) {
            Files.copy(from.resolve(name + ".yaml"), to.resolve(name + ".yaml"));
        }
        return to;
    }

    private static Dataset<Row> table(final String name) {
        return engine.session().read().parquet(out.resolve(name).toString());
    }

    @Test
    void shouldNameEveryFileThatItLeavesOutAndWhy() {
        assertEquals(MADE + 2, outcomes.size());
        final List<Outcome> bad = outcomes.stream().filter(o -> !o.isOk()).toList();
        assertEquals(DAMAGED + 2, bad.size(), bad::toString);
        assertTrue(bad.stream().anyMatch(o -> o.name().equals("large.gpuseg") && o.status().equals(Outcome.DAMAGED)
            && o.reason().contains("longer than 1048576 bytes")), bad::toString);
        assertEquals(Outcome.FOREIGN, outcomes.stream().filter(o -> o.name().equals("notes.gpuseg")).findFirst()
            .orElseThrow().status());
        assertTrue(bad.stream().allMatch(o -> !o.reason().isBlank() && !o.reason().contains("\n")), bad::toString);
        assertTrue(bad.stream().anyMatch(o -> o.status().equals(Outcome.TRUNCATED)), bad::toString);
        assertEquals(bad.size(), table("recordings").where("status <> 'ok'").count());
        final List<Row> without = table("jobs").select("recording").distinct().except(table("recordings")
            .where("status = 'ok'").select("recording")).collectAsList();
        assertEquals(List.of(), without);
    }

    /** The rows that stream by say what the reader of whole recordings says. */
    @Test
    void shouldHaveTheFiguresOfEachRecordingThatTraceStatsHas() throws IOException {
        int compared = 0;
        for (final Outcome one : outcomes.stream().filter(Outcome::isOk).limit(3).toList()) {
            for (final TraceStats.Row row : TraceStats.of(TraceBuilder.read(Source.open(recordings.resolve(
                one.name()))))) {
                final Figures.OfRecording found = figures.byRecording().stream().filter(r -> r.recording().equals(
                    one.name()) && r.task().equals(row.task())).findFirst().orElseThrow();
                assertEquals(row.jobs(), found.complete(), row.task());
                assertEquals(Math.max(0, row.misses()), found.late(), row.task());
                assertEquals(row.response().maxNs(), found.maxNs(), row.task());
                assertEquals(row.response().p99Ns(), found.p99Ns(), row.response().p99Ns() * 0.001, row.task());
                assertEquals(row.segments(), table("segments").where("recording = '" + one.name() + "' and task = '"
                    + row.task() + "'").count(), row.task());
                compared++;
            }
        }
        assertTrue(compared >= 9, compared + " rows");
    }

    @Test
    void shouldFindTheTaskThatTheNewVersionMadeSlower() {
        final List<String> slower = figures.drift().compared().stream()
            .filter(c -> c.verdict() == Drift.Verdict.SLOWER && c.measure() == Drift.Measure.P99)
            .map(Drift.Compared::task).toList();
        assertEquals("2.9", figures.drift().before());
        assertEquals("2.10", figures.drift().after());
        assertTrue(slower.contains("robot.obstacle_stop"), () -> figures.drift().toString());
        assertFalse(slower.contains("autoware.ekf"), () -> figures.drift().toString());
    }

    /** By robot, version, source and task, in the figures, in report.json and on the page. */
    @Test
    void shouldOrderTheWorstChainsAsTheEventsSay() throws IOException {
        final List<OwnFigures.Chain> expected = own().chains();
        assertTrue(expected.stream().map(OwnFigures.Chain::robot).distinct().count() >= 2
            && expected.stream().map(OwnFigures.Chain::version).distinct().count() == 2
            && expected.stream().map(OwnFigures.Chain::source).distinct().count() >= 2
            && expected.stream().map(OwnFigures.Chain::task).distinct().count() >= 3
            && expected.stream().allMatch(c -> c.outputs() > 10), expected::toString);
        assertEquals(expected.size(), figures.chains().size(), () -> figures.chains().toString());
        final JsonNode json = new ObjectMapper().readTree(out.resolve("report.json").toFile()).path("chains");
        final List<List<String>> page = rowsBelow("Worst chains");
        assertEquals(expected.size(), json.size());
        assertEquals(Math.min(40, expected.size()), page.size());
        for (int i = 0; i < expected.size(); i++) {
            final OwnFigures.Chain is = expected.get(i);
            final Figures.ChainAge found = figures.chains().get(i);
            final ResponseHistogram ages = found.ages();
            assertEquals(is, new OwnFigures.Chain(found.source(), found.task(), found.version(), found.robot(),
                (int) ages.total(), within(is.p50Ns(), ages.quantileNs(0.5)), within(is.p99Ns(), ages.quantileNs(0.99)),
                ages.maxNs(), found.recording()), "chain " + i);
            assertEquals(is, new OwnFigures.Chain(json.path(i).path("source").asText(), json.path(i).path("task")
                .asText(), json.path(i).path("version").asText(), json.path(i).path("robot").asText(), json.path(i)
                .path("outputs").asInt(), within(is.p50Ns(), json.path(i).path("p50_ns").asLong()), within(is.p99Ns(),
                json.path(i).path("p99_ns").asLong()), json.path(i).path("max_ns").asLong(), json.path(i)
                .path("recording").asText()), "chain " + i + " of report.json");
            if (i < page.size()) {
                assertEquals(List.of(is.source() + " \u2192 " + is.task(), is.version(), is.robot(), is.outputs() + "",
                    ms(is.maxNs()), is.recording()), List.of(page.get(i).get(0), page.get(i).get(1), page.get(i).get(2),
                    page.get(i).get(3), page.get(i).get(6), page.get(i).get(7)), "chain " + i + " of the page");
            }
        }
        assertTrue(table("decisions").where("kind = 'PREEMPT' and by_task is not null").count() > 0);
    }

    /** The one task that is closest to its deadlines in every recording does not fill the list. */
    @Test
    void shouldNameTheWorstJobOfEachTaskVersionAndRobotAsTheEventsSay() throws IOException {
        final List<OwnFigures.Job> all = own().worstJobs();
        final List<OwnFigures.Job> expected = all.subList(0, Math.min(20, all.size()));
        assertTrue(all.size() > 20 && expected.stream().map(OwnFigures.Job::task).distinct().count() >= 3
            && expected.stream().map(OwnFigures.Job::robot).distinct().count() >= 3, all::toString);
        assertEquals(expected, figures.worstJobs().stream().map(w -> new OwnFigures.Job(w.recording(), w.robot(),
            w.version(), w.task(), w.number(), w.responseNs(), w.deadlineNs())).toList());
        assertEquals(expected.stream().map(job -> List.of(job.task(), job.robot(), job.number() + "",
            ms(job.responseNs()))).toList(), rowsBelow("Jobs closest to their deadlines").stream()
            .map(row -> List.of(row.get(0), row.get(2), row.get(3), row.get(4))).toList());
    }

    private static OwnFigures own() throws IOException {
        final OwnFigures own = new OwnFigures();
        for (final Outcome one : outcomes) {
            if (one.isOk()) {
                own.add(recordings.resolve(one.name()), one);
            }
        }
        return own;
    }

    /** A quantile of the report is at most 0.1 % too long: then it counts as the exact one. */
    private static long within(final long exactNs, final long foundNs) {
        return foundNs >= exactNs && foundNs <= exactNs * 1.001 ? exactNs : foundNs;
    }

    private static String ms(final long ns) {
        return String.format(Locale.ROOT, "%.3f", ns / 1e6);
    }

    /** The cells of the rows of the first table below a heading, without the row of headings. */
    private static List<List<String>> rowsBelow(final String heading) throws IOException {
        final String html = Files.readString(out.resolve("report.html"));
        final int from = html.indexOf("<h2>" + heading);
        final String rows = html.substring(from, html.indexOf("</table>", from));
        return rows.lines().filter(line -> line.startsWith("<tr><td")).map(line -> Stream.of(line.split("</td>"))
            .filter(cell -> cell.contains("<td")).map(cell -> cell.replaceAll("<[^>]*>", "").replace(",", ""))
            .toList()).toList();
    }

    @Test
    void shouldGiveTheSameFiguresWhateverTheNumberOfParts() throws IOException {
        final String expected = Files.readString(out.resolve("report.json"));
        assertTrue(expected.length() > 10_000, expected);
        engine.close();
        engine = TestEngine.local(1);
        final Path again = directory.resolve("again");
        final FleetRecordings fleet = new FleetRecordings(engine, again);
        fleet.report(fleet.convert(recordings), "2.9", "2.10");
        assertEquals(expected, Files.readString(again.resolve("report.json")));
        assertEquals(Files.readString(out.resolve("report.html")), Files.readString(again.resolve("report.html")));
    }

    @Test
    void shouldWriteOnePageThatLoadsNothing() throws IOException {
        final String html = Files.readString(out.resolve("report.html"));
        assertTrue(html.contains("SIMULATED GPU") && html.contains("notes.gpuseg") && html.contains("robot.people"));
        assertFalse(html.contains("<script") || html.contains("src=") || html.contains("@import"), "loads something");
        assertFalse(Files.exists(out.resolve(".parts")));
    }

    @Test
    void shouldRefuseWhatItCannotDoInOneLine() throws IOException {
        final FleetRecordings fleet = new FleetRecordings(engine, out);
        assertThrows(FileAlreadyExistsException.class, () -> fleet.convert(recordings));
        final Path empty = Files.createDirectories(directory.resolve("empty"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new FleetRecordings(engine,
            directory.resolve("never")).convert(empty)).getMessage().contains("no *.gpuseg below it"));
        assertThrows(IllegalArgumentException.class, () -> new RecordingPlan(0, 1, List.of("1"), 1, 0, 0, 1));
    }

    @Test
    void shouldDocumentEveryColumn() throws IOException {
        assertEquals(Tables.documentation(),
            Files.readAllLines(Path.of(System.getProperty("gpuseg.root"), "fleet", "docs", "columns.tsv")));
    }

    @Test
    void shouldDivideFilesIntoPartsOfAboutEqualSizes() {
        final List<RecordingFile> files = new ArrayList<>();
        Stream.of(900L, 100L, 500L, 400L, 300L, 200L).forEach(bytes -> files.add(new RecordingFile("/" + bytes,
            "" + bytes, null, null, bytes)));
        assertEquals(List.of(List.of("300", "900"), List.of("100", "200", "400", "500")), RecordingFile.divide(files, 2)
            .stream().map(part -> part.stream().map(RecordingFile::name).toList()).toList());
    }
}
