/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class ReportTest {
    private static final Path CHROMIUM = Path.of("/usr/bin/chromium");

    @TempDir
    private Path directory;

    private static Report report(final TaskSet set, final String... analyses) {
        return Report.create(set, "the file".getBytes(StandardCharsets.UTF_8),
            List.of(analyses).stream().map(a -> Analyses.get(a).analyse(set)).toList());
    }

    private static TaskSet robot() {
        return Sets.set(WaitMode.SUSPEND, 3, 1,
            Sets.task("camera", 1, 9, 80, Sets.cpu(2), Sets.gpu(2, 4), Sets.cpu(4), Sets.gpu(1, 2)),
            Sets.task("<planner> & \"co\"", 1, 8, 150, Sets.cpu(20)),
            Sets.task("detector", 2, 7, 190, Sets.cpu(4), Sets.gpu(5, 40), Sets.cpu(20)),
            Sets.task("logger", 3, 0, 200, Sets.cpu(4), Sets.gpu(1, 44)));
    }

    /** In busy mode the simulated threads would wait for each other without end. */
    @Test
    void shouldReportAllAnalysesOfASetWithEqualPriorities() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 2, 0.1, Sets.task("a", 1, 50, 100, Sets.gpu(1, 1)),
            Sets.task("b", 1, 50, 100, Sets.gpu(1, 1)), Sets.task("c", 2, 40, 100, Sets.gpu(1, 1)));
        final Report report = Report.create(set, new byte[0],
            Analyses.all().stream().map(a -> a.analyse(set)).toList());
        assertTrue(HtmlReport.render(report).contains("M5: the set has mode: suspend"));
        assertTrue(report.sections().stream().anyMatch(s -> s.worst() == null));
    }

    @Test
    void shouldShowTheNumbersOfTheJson() throws Exception {
        final Report report = report(robot(), "gcaps-window-suspend", "gcaps-suspend");
        check(HtmlReport.render(report), new ObjectMapper().readTree(JsonReport.render(report)), 38);
    }

    private static void check(final String html, final JsonNode json, final int atLeast) {
        assertTrue(html.contains(json.get("schedulable").asBoolean()
            ? "every deadline holds" : "a deadline may be missed"));
        assertTrue(html.contains(json.at("/input/sha256").asText()));
        int compared = 0;
        for (final var entry : json.get("results").properties()) {
            final int start = html.indexOf("<section id=\"" + entry.getKey() + "\"");
            final String section = html.substring(start, html.indexOf("</section>", start));
            final Matcher rows = Pattern.compile("<tr[^>]* data-task=\"([^\"]*)\">(.*?)</tr>", Pattern.DOTALL)
                .matcher(section);
            for (final JsonNode task : entry.getValue().get("tasks")) {
                assertTrue(rows.find());
                assertEquals(SvgCanvas.escape(task.get("name").asText()), rows.group(1));
                compared += compare(rows.group(2), "wcrt", task.get("wcrt_ns"));
                compared += compare(rows.group(2), "deadline", task.get("deadline_ns"));
                compared += compare(rows.group(2), "cpu", task.get("cpu_ns"));
                compared += compare(rows.group(2), "gpu", task.get("gpu_ns"));
                compared += compare(rows.group(2), "seen", task.get("simulated_max_ns"));
            }
            assertFalse(rows.find());
        }
        assertTrue(compared >= atLeast, "compared " + compared);
    }

    /** The exact value in the attribute, and the text, which is that value in ms rounded up to three decimals. */
    private static int compare(final String row, final String key, final JsonNode value) {
        final Matcher cell = Pattern.compile("data-key=\"" + key + "\"(?: data-ns=\"(\\d+)\")?>(?:<strong>)?([^<]*)<")
            .matcher(row);
        assertTrue(cell.find(), key + " in " + row);
        if (value.isNull()) {
            assertEquals("\u2013", cell.group(2));
            return 0;
        }
        assertEquals(value.asLong(), Long.parseLong(cell.group(1)));
        assertEquals(Figures.ms(value.asLong()), cell.group(2));
        return 1;
    }

    @Test
    void shouldBeOneFileThatNeedsNothingElse() {
        final String html = HtmlReport.render(report(robot(), "gcaps-window-suspend"));
        final String without = html.replace("http://www.w3.org/2000/svg", "");
        assertFalse(without.contains("http://") || without.contains("https://") || without.contains(" src="));
        assertFalse(without.contains("@import") || without.contains("url("));
        assertFalse(html.contains("<planner>"), "a name must be escaped everywhere");
    }

    @Test
    void shouldSayTheSameAsText() {
        final Report report = report(robot(), "gcaps-window-suspend");
        final String text = TextReport.render(report);
        assertTrue(text.startsWith("test: " + (report.schedulable() ? "SCHEDULABLE" : "NOT SCHEDULABLE")), text);
        report.sections().get(0).result().tasks().stream().filter(t -> t.wcrtNs() != null)
            .forEach(t -> assertTrue(text.contains(Figures.ms(t.wcrtNs())), text));
    }

    @Test
    void shouldSimulateTheCoresThatTheAnalysisAssumes() {
        final Report report = report(robot(), "edf-fp-suspend", "edf-edf-suspend");
        assertEquals(CpuPolicy.FP, report.sections().get(0).worst().options().cpuPolicy());
        assertEquals(CpuPolicy.EDF, report.sections().get(1).worst().options().cpuPolicy());
    }

    /** One task: C = 4, D = 10. C may grow to 10, that is by 150 %. */
    @Test
    void shouldFindTheExactLimitOfGrowth() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("a", 1, 1, 10, Sets.cpu(4)));
        final Sensitivity s = Sensitivity.of(Analyses.get("gcaps-window-suspend"), set);
        assertEquals(2500, s.cpuPermille());
        assertEquals(List.of(2500L), s.taskCpuPermille());
        assertEquals(Sensitivity.NONE, s.gpuPermille());
        assertTrue(s.epsilonNs().isEmpty());
    }

    /** R = C + G + 2 eps + 2 eps = 6 ms + 4 eps, D = 10 ms: epsilon may be 1 ms. */
    @Test
    void shouldFindTheExactLimitOfEpsilon() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0.5, Sets.task("a", 1, 1, 10, Sets.cpu(2), Sets.gpu(1, 3)));
        assertEquals(2 * Sets.MS, Sensitivity.of(Analyses.get("gcaps-window-suspend"), set).epsilonNs()
            .orElseThrow());
    }

    @Test
    void shouldSayThatNoShrinkingHelps() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("a", 1, 2, 10, Sets.cpu(1)),
            Sets.task("b", 1, 1, 10, Sets.cpu(11)));
        final Sensitivity s = Sensitivity.of(Analyses.get("gcaps-window-suspend"), set);
        assertEquals(Sensitivity.NEVER, s.taskCpuPermille().get(0));
        assertTrue(s.cpuPermille() > 0 && s.cpuPermille() < 1000);
    }

    @Test
    void shouldNameTheVersionOfTheBuild() throws Exception {
        final String pom = Files.readString(Path.of(System.getProperty("gpuseg.root"), "pom.xml"));
        assertTrue(pom.contains("<version>" + Report.VERSION), Report.VERSION);
    }

    @Test
    void shouldRenderInABrowserWithoutAConsoleMessage() throws Exception {
        assumeTrue(Files.isExecutable(CHROMIUM), "no browser: " + CHROMIUM + " missing");
        final Report report = report(robot(), "gcaps-window-suspend");
        final Path file = directory.resolve("report.html");
        Files.writeString(file, HtmlReport.render(report));
        final Path dom = directory.resolve("dom.html");
        final Path log = directory.resolve("log.txt");
        final Process browser = new ProcessBuilder(CHROMIUM.toString(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--user-data-dir=" + directory.resolve("profile"), "--enable-logging=stderr",
            "--dump-dom",
            file.toUri().toString()).redirectOutput(dom.toFile()).redirectError(log.toFile()).start();
        try {
            assertTrue(browser.waitFor(60, TimeUnit.SECONDS), "the browser hangs");
        } finally {
            browser.descendants().forEach(ProcessHandle::destroyForcibly);
            browser.destroyForcibly();
        }
        final String messages = Files.readString(log);
        assertFalse(messages.contains("CONSOLE"), messages);
        final String rendered = Files.readString(dom);
        final int start = rendered.indexOf("id=\"report-json\">");
        assertTrue(start > 0, rendered);
        final String json = rendered.substring(start + 17, rendered.indexOf("</script>", start));
        check(rendered.replace("&lt;planner&gt; &amp; &quot;co&quot;", SvgCanvas.escape("<planner> & \"co\""))
            .replace("data-task=\"<planner> &amp; &quot;co&quot;\"", "data-task=\""
                + SvgCanvas.escape("<planner> & \"co\"") + "\""), new ObjectMapper().readTree(json), 19);
        assertEquals(2, rendered.split("<svg", -1).length - 1);
    }
}
