/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.PrometheusServer;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Metrics of a real daemon with real tasks on the virtual GPU, as a real Prometheus sees them. */
@Timeout(240)
@Tag("long")
@Tag("beside")
class MetricsTest {
    private static final Path ROOT = Path.of(System.getProperty("gpuseg.root"));
    private static final Path PROMTOOL = PrometheusServer.program("promtool");
    private static final Path ALERTS = ROOT.resolve("rt-scheduler/daemon/monitoring/gpuseg-alerts.yml");
    private static final Path DASHBOARD = ROOT.resolve("rt-scheduler/daemon/monitoring/gpuseg-dashboard.json");
    private static final Path DOCUMENTATION = ROOT.resolve("rt-scheduler/docs/metrics.md");
    private static final Pattern NAME = Pattern.compile("\\b(?:gpuseg|jvm|process)_[a-z_]+\\b");
    private static final ObjectMapper JSON = new ObjectMapper();

    @RegisterExtension
    private final SystemRig rig = new SystemRig();
    @TempDir
    private Path directory;

    private String daemonAddress() throws InterruptedException {
        rig.gpu();
        final Child daemon = rig.daemon("--metrics", "127.0.0.1:0");
        final Matcher at = Pattern.compile("metrics (127\\.0\\.0\\.1:[1-9][0-9]*)").matcher(daemon.lastLine());
        assertTrue(at.find(), daemon.lastLine());
        return at.group(1);
    }

    /** Three tasks that come, compete, miss, and go. */
    private void load() throws IOException, InterruptedException, TimeoutException {
        // more than the GPU can do: hasty is preempted and late in every period
        final Child camera = rig.task("camera", 70, "40ms", "gpu:1ms+6ms", "3s");
        final Child hasty = rig.task("hasty", 20, "40ms", "gpu:1ms+36ms", "3s");
        final Child mapping = rig.task("mapping", 0, "500ms", "gpu:1ms+10ms", "3s");
        for (final Child task : List.of(camera, hasty, mapping)) {
            SystemRig.summary(task, 60);
        }
    }

    private int promtool(final Path input, final String... arguments) throws IOException, InterruptedException {
        final List<String> command = new ArrayList<>(List.of(PROMTOOL.toString()));
        command.addAll(List.of(arguments));
        final Process process = new ProcessBuilder(command).redirectErrorStream(true)
            .redirectInput(input == null ? ProcessBuilder.Redirect.PIPE : ProcessBuilder.Redirect.from(input.toFile()))
            .redirectOutput(directory.resolve("promtool.out").toFile()).start();
        try {
            assertTrue(process.waitFor(30, TimeUnit.SECONDS), "promtool does not end");
            return process.exitValue();
        } finally {
            process.destroyForcibly();
        }
    }

    private String promtoolSaid() throws IOException {
        return Files.readString(directory.resolve("promtool.out"));
    }

    // ---- what is exposed ------------------------------------------------------------------------------------------

    @Test
    void shouldExposeExactlyWhatIsDocumentedAndWhatTheDashboardAndTheAlertsAskFor() throws IOException,
        InterruptedException, TimeoutException {
        final String address = daemonAddress();
        rig.task("resident", 5, "200ms", "gpu:1ms+1ms", "120s");   // some metrics are there while a task is open
        SystemRig.await("resident", 20_000, () -> !"gone".equals(rig.state("resident")));
        load();
        final String scrape = PrometheusServer.get("http://" + address + "/metrics");
        final Map<String, String> types = new TreeMap<>();
        final Map<String, String> helps = new TreeMap<>();
        scrape.lines().filter(line -> line.startsWith("# ")).map(line -> line.split(" ", 4))
            .forEach(words -> (words[1].equals("TYPE") ? types : helps).put(words[2], words[3]));

        final Map<String, String> documented = new TreeMap<>();
        final Matcher row = Pattern.compile("(?m)^\\| `([a-z_]+)` \\| (\\w+) \\| (.+?) \\|.*\\| (.+?) \\|$")
            .matcher(Files.readString(DOCUMENTATION));
        while (row.find()) {
            documented.put(row.group(1), row.group(2));
            if (row.group(1).startsWith("gpuseg_")) {
                assertEquals(helps.get(row.group(1)), row.group(4), row.group(1));
                assertEquals(row.group(1).contains("_seconds"), row.group(3).equals("s"), row.group(1) + ": unit");
                assertEquals(row.group(1).contains("_seconds"), row.group(4).contains("in seconds"),
                    row.group(1) + ": its help names its unit");
            }
        }
        assertTrue(types.containsKey("jvm_memory_used_bytes") && types.containsKey("process_open_fds"), scrape);
        types.keySet().removeIf(name -> !name.startsWith("gpuseg_"));   // those are the client library's
        assertEquals(types, documented, "scrape against " + DOCUMENTATION);

        final Set<String> samples = scrape.lines().filter(line -> !line.startsWith("#"))
            .map(line -> line.split("[{ ]")[0]).collect(Collectors.toCollection(TreeSet::new));
        final Set<String> asked = new TreeSet<>();
        final JsonNode dashboard = JSON.readTree(DASHBOARD.toFile());
        final Set<Integer> ids = new TreeSet<>();
        for (final JsonNode panel : dashboard.path("panels")) {
            assertTrue(ids.add(panel.path("id").asInt()), "panel ids differ: " + panel.path("title"));
            assertTrue(panel.path("gridPos").path("x").asInt() + panel.path("gridPos").path("w").asInt() <= 24);
            for (final JsonNode target : panel.path("targets")) {
                names(target.path("expr").asText(), asked);
            }
        }
        for (final JsonNode variable : dashboard.path("templating").path("list")) {
            names(variable.path("definition").asText(), asked);
        }
        assertEquals("gpuseg", dashboard.path("uid").asText());
        assertTrue(ids.size() > 20 && dashboard.path("schemaVersion").asInt() > 0);
        Files.readAllLines(ALERTS).stream().filter(line -> line.contains("expr:")).forEach(line -> names(line, asked));
        assertTrue(asked.size() > 20, asked.toString());
        final Set<String> unknown = new TreeSet<>(asked);
        unknown.removeAll(samples);
        assertEquals(Set.of(), unknown, "asked for, but not exposed");
    }

    private static void names(final String text, final Set<String> into) {
        final Matcher name = NAME.matcher(text);
        while (name.find()) {
            into.add(name.group());
        }
    }

    @Test
    void shouldPassPrometheusOwnCheckOfMetricsAndRules() throws IOException, InterruptedException, TimeoutException {
        PrometheusServer.assumeInstalled(PROMTOOL);
        final String address = daemonAddress();
        load();
        final Path scrape = directory.resolve("scrape");
        Files.writeString(scrape, PrometheusServer.get("http://" + address + "/metrics"));
        assertEquals(0, promtool(scrape, "check", "metrics"), promtoolSaid());
        assertEquals("", promtoolSaid().strip(), "no complaint");
        assertEquals(0, promtool(null, "check", "rules", ALERTS.toString()), promtoolSaid());
    }

    @Test
    void shouldAlertWhenItIsTimeAndNotOtherwise() throws IOException, InterruptedException {
        PrometheusServer.assumeInstalled(PROMTOOL);
        final Path cases = ALERTS.resolveSibling("gpuseg-alerts-test.yml");
        assertEquals(0, promtool(null, "test", "rules", cases.toString()), promtoolSaid());
        for (final String line : Files.readAllLines(ALERTS)) {
            if (line.contains("- alert: ")) {
                assertEquals(2, Files.readString(cases).split(line.replaceFirst(".*- alert: ", "") + "\\b").length - 1,
                    line + ": once silent, once firing");
            }
        }
        final Path planted = directory.resolve("planted.yml");
        Files.writeString(planted, Files.readString(cases).replace("[gpuseg-alerts.yml]", "['" + ALERTS + "']")
            .replace("le=\"0.001\"}', values: '0+100x30'", "le=\"0.001\"}', values: '0+1x30'"));
        assertEquals(1, promtool(null, "test", "rules", planted.toString()), promtoolSaid());
        assertTrue(promtoolSaid().contains("GpusegEnforcementSlow"), promtoolSaid());
    }

    // ---- what a Prometheus makes of it ----------------------------------------------------------------------------

    @Test
    void shouldLetARealPrometheusAnswerWhatTheDaemonsStatusSays() throws IOException, InterruptedException,
        TimeoutException {
        final String address = daemonAddress();
        final PrometheusServer classic = prometheus("classic", address);
        final PrometheusServer natives = prometheus("native", address, "--enable-feature=native-histograms");
        load();
        SystemRig.await("the journal's thread", 20_000, () -> rig.counter("ends") > 0);
        final Map<String, String> same = Map.of("gpuseg_events_total{event=\"begins\"}", "begins",
            "sum(gpuseg_segments_total)", "ends", "sum(gpuseg_jobs_total)", "jobs",
            "sum(gpuseg_preemptions_total)", "preemptions", "sum(gpuseg_deadline_miss_total)", "deadline_misses",
            "sum(gpuseg_job_deadline_miss_total)", "job_misses", "sum(gpuseg_segment_response_seconds_count)", "ends",
            "sum(gpuseg_segment_queue_wait_seconds_count)", "grants",
            "sum(gpuseg_runlist_update_seconds_count{op=\"disable\"})", "disables",
            "gpuseg_conductor_events_total{event=\"tasks_opened\"}", "conductor_tasks_opened");
        for (final Map.Entry<String, String> entry : same.entrySet()) {
            final long said = rig.counter(entry.getValue());
            classic.awaitValue(entry.getKey(), said);
        }
        assertTrue(rig.counter("preemptions") > 0 && rig.counter("deadline_misses") > 0, "the load must do something");
        natives.awaitValue("sum(histogram_count(gpuseg_job_response_seconds))", rig.counter("jobs"));
        final double median = natives.awaitNumber(
            "histogram_quantile(0.5, gpuseg_job_response_seconds{task=\"camera\"})");
        final double classicMedian = classic.awaitNumber("histogram_quantile(0.5, sum by (le) "
            + "(gpuseg_job_response_seconds_bucket{task=\"camera\"}))");
        assertTrue(median > 0.006 && median < 1, "a job of camera takes 7 ms and more: " + median);
        assertTrue(Math.abs(median - classicMedian) < classicMedian, median + " against " + classicMedian);
        classic.awaitValue("gpuseg_daemon_info{simulated=\"true\",mechanism=\"sim\"}", 1);
        classic.awaitValue("gpuseg_tasks", 0);
        classic.awaitValue("count(ALERTS{alertname=\"GpusegDown\"}) or vector(0)", 0);
        final JsonNode rules = classic.rules();
        assertTrue(rules.size() >= 10, "the alert rules are loaded");
        for (final JsonNode rule : rules) {
            assertFalse("err".equals(rule.path("health").asText()), rule.toString());
        }
    }

    /** Grafana's variables stand for all instances and tasks, and for a range that holds some scrapes. */
    private static String query(final String expression) {
        return expression.replace("$instance", ".*").replace("$task", ".*").replace("$__rate_interval", "10s")
            .replace("$__range", "1m");
    }

    @Test
    void shouldAnswerEveryQueryOfTheDashboardAndEveryRule() throws IOException, InterruptedException {
        final PrometheusServer prometheus = prometheus("dashboard", daemonAddress());
        rig.task("camera", 70, "40ms", "gpu:1ms+6ms", "120s");
        rig.task("hasty", 20, "40ms", "gpu:1ms+36ms", "120s");
        rig.task("mapping", 0, "100ms", "gpu:1ms+10ms", "120s");
        final Set<String> open = new TreeSet<>();
        final JsonNode dashboard = JSON.readTree(DASHBOARD.toFile());
        for (final JsonNode panel : dashboard.path("panels")) {
            panel.path("targets").forEach(target -> open.add(target.path("expr").asText()));
        }
        for (final JsonNode variable : dashboard.path("templating").path("list")) {
            final Matcher values = Pattern.compile("label_values\\((\\w+), (\\w+)\\)")
                .matcher(variable.path("definition").asText());
            if (values.matches()) {
                open.add("group by (" + values.group(2) + ") (" + values.group(1) + ")");
            }
        }
        assertTrue(open.size() > 25, open.toString());
        assertEquals(List.of(), prometheus.unanswered(open.stream().map(MetricsTest::query).toList()),
            "queries without an answer");
        assertFalse(prometheus.answers("gpuseg_no_such_metric"), "this test can fail");
        int rules = 0;
        for (final JsonNode rule : prometheus.rules()) {
            prometheus.results(rule.path("query").asText());
            rules++;
        }
        assertEquals(Files.readAllLines(ALERTS).stream().filter(line -> line.contains("- alert: ")).count(), rules);
    }

    private PrometheusServer prometheus(final String name, final String target, final String... options)
        throws IOException, InterruptedException {
        return PrometheusServer.start(rig, directory.resolve(name), ALERTS, List.of("{targets: ['" + target + "']}"),
            options);
    }
}
