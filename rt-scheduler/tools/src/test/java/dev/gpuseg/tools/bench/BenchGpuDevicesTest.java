/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The scenario with two GPUs. */
class BenchGpuDevicesTest extends BenchGpuRig {
    @Test
    void shouldMeasureTwoGpusUnderOneDaemon() throws Exception {
        useGpus(2);
        final Ended run = bench("--scenarios", "gpus", "--strategies", "NONE,OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("gpus");
        assertEquals(2, scenario.path("gpus").asInt());
        assertEquals(List.of("default", "default, a task on each", "interrupt, optimistic",
            "interrupt, optimistic, a task on each"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(JOBS, cell.path("jobs").asInt(), all);
        }
        assertTrue(scenario.path("cells").get(2).path("other_gpu_kept").asDouble() > 0, all);
        assertTrue(scenario.path("cells").get(3).path("other_gpu").path("jobs").asInt() > 0, all);
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("the task on GPU 1"), run.out());
        final JsonNode kept = goal(result, "two GPUs: best-effort");
        assertTrue(kept.path("measured").asDouble() > 0, kept.toString());
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
    }

    @Test
    void shouldSayWhyTwoGpusAreNotMeasuredWhereThereIsOne() throws Exception {
        final Ended run = bench("--scenarios", "gpus", "--strategies", "NONE");
        assertEquals(ExitCode.FAILURE, run.status(), "asked for by name: " + run.said());
        assertEquals("it needs two GPUs, the driver lists 1",
            results().path("scenarios").path("gpus").path("not_run").asText());
    }
}
