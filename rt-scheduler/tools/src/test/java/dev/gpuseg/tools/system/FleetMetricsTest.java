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
import java.util.Set;
import java.util.TreeSet;
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
    @TempDir
    private Path directory;

    private String target(final SystemRig rig, final String robot, final String version)
        throws InterruptedException {
        rig.gpu();
        final Child daemon = rig.daemon("--metrics", "127.0.0.1:0");
        daemons.add(daemon);
        final Matcher at = Pattern.compile("metrics (127\\.0\\.0\\.1:[1-9][0-9]*)").matcher(daemon.lastLine());
        assertTrue(at.find(), daemon.lastLine());
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
        for (final SystemRig rig : rigs) {
            rig.task("camera", 70, "100ms", "gpu:1ms+6ms", "240s");
        }
        // more than the GPU can do, on the robots with version 2.0
        second.task("hasty", 20, "40ms", "gpu:1ms+60ms", "240s");
        third.task("hasty", 20, "40ms", "gpu:1ms+60ms", "240s");
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
        // a robot whose daemon ends is counted as gone
        SystemRig.signal(daemons.get(2), "KILL");
        prometheus.awaitValue("version:gpuseg_robots:count{version=\"2.0\"}", 1);
    }
}
