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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Three daemons as three robots with two versions of their software, scraped by one real Prometheus. */
@Timeout(300)
@Tag("long")
@Tag("beside")
class FleetMetricsTest {
    private static final Path FILES = Path.of(System.getProperty("gpuseg.root")).resolve("fleet/monitoring");
    private static final Path RULES = FILES.resolve("gpuseg-fleet-rules.yml");
    private static final ObjectMapper JSON = new ObjectMapper();

    @RegisterExtension
    private final SystemRig first = new SystemRig();
    @RegisterExtension
    private final SystemRig second = new SystemRig();
    @RegisterExtension
    private final SystemRig third = new SystemRig();
    private final List<Child> daemons = new ArrayList<>();
    /** Of each daemon's metrics, by robot. */
    private final Map<String, String> addresses = new TreeMap<>();
    @TempDir
    private Path directory;

    private String target(final SystemRig rig, final String robot, final String version)
        throws InterruptedException {
        rig.gpu();
        final Child daemon = rig.daemon("--metrics", "127.0.0.1:0");
        daemons.add(daemon);
        final Matcher at = Pattern.compile("metrics (127\\.0\\.0\\.1:[1-9][0-9]*)").matcher(daemon.lastLine());
        assertTrue(at.find(), daemon.lastLine());
        addresses.put(robot, at.group(1));
        return "{targets: ['" + at.group(1) + "'], labels: {robot: " + robot + ", version: '" + version + "'}}";
    }

    /** As {@link DashboardTest} asks of the other dashboard. */
    @Test
    void shouldKeepTheRulesOfGrafanasDashboardModel() throws IOException {
        final List<String> problems = new ArrayList<>(DashboardTest.problems(dashboard()));
        problems.remove("panels");   // fewer than that one has
        assertEquals(List.of(), problems);
    }

    private static JsonNode dashboard() throws IOException {
        return JSON.readTree(FILES.resolve("gpuseg-fleet-dashboard.json").toFile());
    }

    @Test
    void shouldAnswerForAllRobotsWhatEachOfThemSaysOfItself() throws Exception {
        final Path rules = Files.writeString(directory.resolve("rules.yml"), Files.readString(RULES)
            .replace("interval: 30s", "interval: 1s"));
        final List<SystemRig> rigs = List.of(first, second, third);
        final PrometheusServer prometheus = PrometheusServer.start(first, directory.resolve("fleet"), rules,
            List.of(target(first, "r1", "1.0"), target(second, "r2", "2.0"), target(third, "r3", "2.0")));
        final List<Child> tasks = new ArrayList<>();
        for (final SystemRig rig : rigs) {
            tasks.add(rig.task("camera", 70, "100ms", "gpu:1ms+6ms", "240s"));
        }
        // more than the GPU can do, on the robots with version 2.0
        tasks.add(second.task("hasty", 20, "40ms", "gpu:1ms+60ms", "240s"));
        tasks.add(third.task("hasty", 20, "40ms", "gpu:1ms+60ms", "240s"));
        final Set<String> open = new TreeSet<>();
        for (final JsonNode panel : dashboard().path("panels")) {
            panel.path("targets").forEach(target -> open.add(target.path("expr").asText()
                .replaceAll("\\$(robot|version|task)", ".*")));
        }
        for (final JsonNode rule : prometheus.rules()) {
            open.add(rule.path("name").asText());
        }
        assertTrue(open.size() > 15, open::toString);
        assertEquals(List.of(), prometheus.unanswered(List.copyOf(open)), "queries without an answer");
        prometheus.awaitValue("version:gpuseg_robots:count{version=\"2.0\"}", 2);
        prometheus.awaitValue("count(robot_task:gpuseg_jobs:rate5m{task=\"camera\"})", 3);
        prometheus.awaitValue("count(version_task:gpuseg_job_miss_ratio:rate5m{task=\"hasty\"})", 1);
        final double late = prometheus.awaitNumber("version_task:gpuseg_job_miss_ratio:rate5m{task=\"hasty\"}");
        assertTrue(late > 0.5 && late <= 1, "share of late jobs of hasty: " + late);
        final double slow = prometheus.awaitNumber("version_task:gpuseg_job_response_seconds:p99_5m{task=\"hasty\"}");
        assertTrue(slow > 0.04, "p99 of hasty: " + slow);
        assertFalse(prometheus.answers("robot:gpuseg_jobs"), "this test can fail");
        for (final JsonNode rule : prometheus.rules()) {
            assertEquals("ok", rule.path("health").asText(), rule::toString);
        }
        for (final Child task : tasks) {   // what the daemons count stands still
            SystemRig.signal(task, "STOP");
        }
        for (final String task : List.of("camera", "hasty")) {
            compareSums(prometheus, task, late);
        }
        // a robot whose daemon ends is counted as gone
        SystemRig.signal(daemons.get(2), "KILL");
        prometheus.awaitValue("version:gpuseg_robots:count{version=\"2.0\"}", 1);
    }

    /** What a daemon itself says of a counter of a task; 0 if it does not have it. */
    private long told(final String robot, final String counter, final String task)
        throws IOException, InterruptedException {
        final Matcher line = Pattern.compile("(?m)^" + counter + "\\{[^}]*task=\"" + task + "\"[^}]*} ([0-9.eE+]+)$")
            .matcher(PrometheusServer.get("http://" + addresses.get(robot) + "/metrics"));
        long sum = 0;
        while (line.find()) {
            sum += (long) Double.parseDouble(line.group(1));
        }
        return sum;
    }

    /** Once no job ends any more: Prometheus's sums over robots are those of the daemons' own pages. */
    private void compareSums(final PrometheusServer prometheus, final String task, final double late)
        throws IOException, InterruptedException {
        for (final String counter : List.of("gpuseg_jobs_total", "gpuseg_job_deadline_miss_total",
            "gpuseg_job_response_seconds_count")) {
            long before;
            long sum = -1;
            do {   // an event that the metrics have not seen yet may follow
                before = sum;
                TimeUnit.MILLISECONDS.sleep(500);
                sum = 0;
                for (final String robot : addresses.keySet()) {
                    sum += told(robot, counter, task);
                }
            } while (sum != before);
            assertTrue(sum > 0 || counter.contains("miss") && task.equals("camera"), counter + " of " + task);
            prometheus.awaitValue("sum(" + counter + "{task=\"" + task + "\"})", sum);
            for (final String robot : addresses.keySet()) {
                final long own = told(robot, counter, task);
                if (own > 0) {
                    prometheus.awaitValue("sum(" + counter + "{robot=\"" + robot + "\",task=\"" + task + "\"})", own);
                }
            }
        }
        if (task.equals("hasty")) {
            final double said = (double) (told("r2", "gpuseg_job_deadline_miss_total", task)
                + told("r3", "gpuseg_job_deadline_miss_total", task))
                / (told("r2", "gpuseg_jobs_total", task) + told("r3", "gpuseg_jobs_total", task));
            assertEquals(said, late, 0.15, "share of late jobs of hasty, as the rule and as the daemons say");
        }
    }
}
