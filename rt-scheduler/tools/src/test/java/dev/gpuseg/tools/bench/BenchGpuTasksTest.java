/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The scenarios with several periodic tasks at the same time. */
class BenchGpuTasksTest extends BenchGpuRig {
    private static final Path MPS = Path.of(System.getProperty("gpuseg.root"), "rt-scheduler/native/tests/mps");

    @Test
    void shouldMeasureTenTasksTogether() throws Exception {
        final Ended run = bench("--scenarios", "robot", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("robot");
        assertEquals(List.of("not anticipated", "anticipated"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(10, cell.path("tasks").size(), all);
            for (final JsonNode task : cell.path("tasks")) {
                assertTrue(task.path("jobs").asInt() > 0 && task.has("p99_to_alone") && task.has("missed"), all);
            }
        }
        assertTrue(scenario.path("cells").get(1).path("others_to_unanticipated").asDouble() > 0, all);
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("servo"), run.out());
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
    }

    /** MPS is two scripts here: its clients are known by what stands in their environment. */
    @Test
    void shouldMeasureInferenceServingByDriverMpsAndDaemon() throws Exception {
        script(python().resolveSibling("nvidia-cuda-mps-control"), """
            #!/bin/sh
            [ -d "$CUDA_MPS_PIPE_DIRECTORY" ] && [ -d "$CUDA_MPS_LOG_DIRECTORY" ] || exit 9
            [ "$1" = -d ] || cat >> "$0.told"
            """);
        final Ended run = bench("--scenarios", "disb", "--strategies", "NONE,OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("disb");
        assertEquals(List.of("A, default", "A, interrupt, optimistic", "A, MPS"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(1, cell.path("tasks").size(), all);
            assertTrue(cell.path("others_per_ms").asDouble() > 0, all);
            final JsonNode task = cell.path("tasks").get(0);
            assertTrue(task.path("jobs").asInt() > 0 && task.has("p99_to_alone") && task.has("missed"), all);
        }
        assertTrue(run.out().contains("best-effort work to that by the driver alone"), run.out());
        assertEquals(0, GpuGoals.wrong(result));
        assertEquals("quit\n", Files.readString(python().resolveSibling("nvidia-cuda-mps-control.told")));
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
    }

    /** The training, the decoder and the products are a script here, MPS is one, too; driver and MPS are as above. */
    @Test
    void shouldMeasureALoopByTheDaemonAndInASpace() throws Exception {
        script(python().resolveSibling("nvidia-cuda-mps-control"), "#!/bin/sh\nexec "
            + MPS.resolve("nvidia-cuda-mps-control") + " \"$@\"\n");
        final Ended run = bench("--scenarios", "loop", "--strategies", "OPTIMISTIC,EXEC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("loop");
        final List<String> titles = new ArrayList<>();
        for (final String way : List.of("gpuseg", "gpuseg, space")) {
            titles.addAll(List.of(way, way + ", short too", way + ", long too"));
        }
        assertEquals(titles, strategies(scenario), all);
        for (int i = 0; i < titles.size(); i++) {
            final JsonNode cell = scenario.path("cells").get(i);
            assertEquals(1 + i % 3, cell.path("tasks").size(), all);
            assertEquals(3, cell.path("loads").size(), all);
            assertEquals(3, cell.path("loads_wrong").size(), all);
            final JsonNode loop = cell.path("tasks").get(0);
            assertTrue(loop.path("response_ns").path("p99.9").asLong() >= loop.path("net_ns").path("p50").asLong()
                && loop.path("excused").asLong() <= loop.path("missed").asLong(), all);
        }
        assertTrue(run.out().contains("late without the time of its CPU's absence"), run.out());
        assertTrue(run.out().contains("jobs a second: train-vit "), run.out());
        assertEquals(0, GpuGoals.wrong(result));
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
    }

    @Test
    void shouldMeasureWhatAnIrregularTaskCostsOthers() throws Exception {
        final Ended run = bench("--scenarios", "disturb", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("disturb");
        assertEquals(List.of("regular", "jitters by +-2 ms", "stops", "doubles its period"), strategies(scenario), all);
        final List<Integer> jobsOfChanging = new ArrayList<>();
        for (final JsonNode cell : scenario.path("cells")) {
            assertTrue(cell.path("kept_free_share").asDouble() >= 0 && cell.has("anticipations_wasted"), all);
            jobsOfChanging.add(cell.path("tasks").get(1).path("jobs").asInt());
            for (final int kept : new int[] {0, 2}) {
                assertTrue(cell.path("tasks").get(kept).path("p99_to_regular").asDouble() > 0, all);
            }
        }
        assertEquals(List.of(5 * JOBS, 5 * JOBS, 5 * JOBS / 2, (5 * JOBS * 2 + 2) / 3), jobsOfChanging,
            "all; all; the first half; as many as fit if the second half has twice the period");
        assertEquals(1, scenario.path("cells").get(0).path("tasks").get(0).path("p99_to_regular").asDouble());
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("GPU kept free"), run.out());
        assertTrue(goal(result, "a task stops").path("measured").asDouble() > 0, all);
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
    }
}
