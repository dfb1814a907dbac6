/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.Dossier;
import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.OutOfModel;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
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
        assertTrue(html.contains(">" + SvgCanvas.escape(json.at("/verdict/sentence").asText()) + "</p>"), html);
        assertTrue(html.contains(json.at("/provenance/files/0/sha256").asText()));
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
                final String declared = section.substring(section.indexOf("data-declared=\"" + rows.group(1)));
                compared += compare(declared, "cpu", task.get("cpu_ns"));
                compared += compare(declared, "gpu", task.get("gpu_ns"));
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

    /** Own work 9 ms and an update of 1 ms at either end: 11 ms of 8 ms. */
    private static TaskSet refused() {
        return Sets.set(WaitMode.SUSPEND, 1, 1, Sets.task("low & slow", 1, 1, 80, Sets.gpu(1, 8)).withTimes(8 * Sets.MS,
            0, 0));
    }

    @Test
    void shouldExplainARefusedSetInEveryForm() throws Exception {
        final Report report = report(refused(), "gcaps-window-suspend");
        final String html = HtmlReport.render(report);
        assertTrue(html.contains("<p class=\"verdict no\" id=\"verdict\">NOT schedulable: task &quot;low &amp; "
            + "slow&quot; may miss its deadline: its bound is at least 11.0 ms, its deadline is 8.0 ms</p>"), html);
        assertTrue(html.contains("<h3>Why gcaps-window-suspend refuses it, and what would help</h3>"), html);
        assertTrue(html.contains("data-key=\"passed\" data-ns=\"11000000\">\u2265 11.000<"), html);
        assertTrue(html.contains("\u2264 \u22123.000<"), html);
        assertTrue(html.contains("own work (C + G)\u00a09.000 + updates of own segments\u00a02.000, when it "
            + "passed"), html);
        assertFalse(html.contains("Before the first miss"), html);
        final JsonNode json = new ObjectMapper().readTree(JsonReport.render(report));
        assertEquals(11 * Sets.MS, json.at("/results/gcaps-window-suspend/tasks/0/passed_ns").asLong());
        assertEquals(9 * Sets.MS, json.at("/results/gcaps-window-suspend/tasks/0/passed_terms/own_ns").asLong());
        final String text = TextReport.render(report);
        assertTrue(text.contains(">=11.000") && text.contains("to pass, one of: ") && !text.contains("first miss"),
            text);
        final JsonNode why = json.at("/results/gcaps-window-suspend/why");
        assertFalse(why.isEmpty());
        for (final JsonNode line : why) {
            assertTrue(html.contains("<li>" + SvgCanvas.escape(line.asText()) + "</li>"), line.asText());
            assertTrue(text.contains("\n  " + line.asText() + '\n'), line.asText());
        }
    }

    @Test
    void shouldShowInRedWhatAMeasurementContradicts() {
        final TaskSet set = robot();
        final List<AnalysisResult> results = List.of(Analyses.get("gcaps-window-suspend").analyse(set));
        final long boundNs = results.get(0).tasks().get(0).wcrtNs();
        final Measurement measured = new Measurement("run.json", true, Map.of(
            "camera", new Measurement.Figure(400, boundNs + 1, 0, List.of()),
            "detector", new Measurement.Figure(100, Sets.MS, 0, List.of())));
        final Report report = Report.create(set, results, new Dossier(measured, Map.of(), null));
        final String html = HtmlReport.render(report);
        assertTrue(report.schedulable() && report.verdict().contradicted());
        assertTrue(html.contains("class=\"verdict no long\" id=\"verdict\">CONTRADICTED BY THE MEASUREMENT: task "
            + "&quot;camera&quot; took"), html);
        assertTrue(html.contains("(simulated measurement)</p>"), html);
        assertTrue(html.contains("<tr class=\"miss\" data-task=\"camera\"><td>camera</td><td><span class=\"badge no\">"
            + "\u2717 contradicted<"), html);
        assertTrue(html.contains("<td class=\"n over\" data-key=\"measured\" data-ns=\"" + (boundNs + 1)), html);
        assertTrue(html.contains("\u2265 1 of 400 above"), html);
        assertTrue(html.contains("<td class=\"n\" data-key=\"measured\" data-ns=\"1000000\">"), "detector is no red");
        assertTrue(html.contains("<tr data-task=\"detector\"><td>detector</td><td><span class=\"badge yes\">"), html);
    }

    @Test
    void shouldShowNoGreenWhereNothingIsProven() {
        final String html = HtmlReport.render(report(robot(), "gcaps-suspend"));
        assertTrue(html.contains("class=\"verdict open long\" id=\"verdict\">no proof: gcaps-suspend is not "
            + "sound"), html);
        assertFalse(html.contains("badge yes") || html.contains("\u2713"), html);
        final String two = HtmlReport.render(report(robot(), "gcaps-suspend", "gcaps-window-suspend"));
        assertTrue(two.contains("#gcaps-suspend\">gcaps-suspend</a></td><td><span class=\"badge open\">accepts, "
            + "no proof<"), two);
        assertTrue(two.contains("#gcaps-window-suspend\">gcaps-window-suspend</a></td><td><span class=\"badge open\">"
            + "holds under conditions<") && two.contains("class=\"verdict open"), two);
        final TaskSet stated = Sets.stated(robot());
        final String proven = HtmlReport.render(report(stated, "gcaps-suspend", "gcaps-window-suspend"));
        assertTrue(proven.contains(
            "#gcaps-window-suspend\">gcaps-window-suspend</a></td><td><span class=\"badge yes\">")
            && proven.contains("class=\"verdict yes"), proven);
    }

    @Test
    void shouldSayTheSameOfWhatIsOutOfTheModelInEveryForm() throws Exception {
        final Report report = report(robot(), "gcaps-window-suspend");
        final String html = HtmlReport.render(report);
        final String text = TextReport.render(report);
        final JsonNode json = new ObjectMapper().readTree(JsonReport.render(report)).path("out_of_model");
        assertEquals(OutOfModel.values().length, json.size());
        for (final OutOfModel each : OutOfModel.values()) {
            final JsonNode row = json.get(each.ordinal());
            assertEquals(List.of(each.what(), each.daemon(), each.seen()), List.of(row.path("what").asText(),
                row.path("daemon").asText(), row.path("seen").asText()));
            assertTrue(html.contains("<tr><td>" + SvgCanvas.escape(each.what()) + "</td><td>"
                + SvgCanvas.escape(each.daemon()) + "</td><td>" + SvgCanvas.escape(each.seen()) + "</td></tr>"), html);
            assertTrue(text.contains("  " + each.what() + " -- the daemon: " + each.daemon() + " -- seen: "
                + each.seen() + '\n'), text);
        }
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
        assertTrue(text.startsWith("test: " + (report.schedulable() ? "SCHEDULABLE" : "NOT SCHEDULABLE") + "\nverdict: "
            + report.verdict().sentence() + '\n'), text);
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

    /** Wider than the paper, a page is made smaller or cut; the style asks for A4. */
    @Test
    void shouldPrintOnA4() throws Exception {
        assumeTrue(Files.isExecutable(CHROMIUM), "no browser: " + CHROMIUM + " missing");
        final Path file = directory.resolve("print.html");
        Files.writeString(file, HtmlReport.render(report(refused(), "gcaps-window-suspend")));
        final Path pdf = directory.resolve("print.pdf");
        final Process browser = new ProcessBuilder(CHROMIUM.toString(), "--headless", "--no-sandbox", "--disable-gpu",
            "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
            "--disable-sync", "--user-data-dir=" + directory.resolve("print-profile"), "--print-to-pdf=" + pdf,
            file.toUri().toString()).redirectErrorStream(true).redirectOutput(directory.resolve("print.txt").toFile())
            .start();
        try {
            assertTrue(browser.waitFor(60, TimeUnit.SECONDS), "the browser hangs");
        } finally {
            browser.descendants().forEach(ProcessHandle::destroyForcibly);
            browser.destroyForcibly();
        }
        final String printed = Files.readString(pdf, StandardCharsets.ISO_8859_1);
        final Matcher page = Pattern.compile("/MediaBox\\s*\\[0 0 ([0-9.]+) ([0-9.]+)]").matcher(printed);
        assertTrue(page.find(), "no page");
        assertEquals(595, Double.parseDouble(page.group(1)), 1);
        assertEquals(842, Double.parseDouble(page.group(2)), 1);
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
