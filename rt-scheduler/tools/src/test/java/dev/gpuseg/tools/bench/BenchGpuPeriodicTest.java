/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The scenarios with one periodic task. */
class BenchGpuPeriodicTest extends BenchGpuRig {
    @Test
    @Timeout(1500)
    void shouldMeasureWhatAnticipationGains() throws Exception {
        Attempts.of(3, this::measureAnticipation);
    }

    private String measureAnticipation() throws Exception {
        RuntimeDirectory.deleteTree(root().resolve("out"));
        final Ended run = bench("--scenarios", "periodic", "--strategies", "OPTIMISTIC");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("periodic");
        assertEquals(List.of("not anticipated", "period declared", "period learned",
            "period declared, touched", "period learned, touched", "declared, jitter of +-2 ms",
            "declared, then twice the period", "declared, 3 idle contexts more"), strategies(scenario), all);
        final List<String> spoiled = new ArrayList<>();
        for (final JsonNode cell : scenario.path("cells")) {
            if (cell.path("strategy").asText().equals("period declared, touched")) {
                untouched(cell, spoiled);
            } else if (!cell.path("strategy").asText().contains("touched")) {
                assertEquals(0, cell.path("touches").asInt(-1), all);
            }
            assertEquals(3 * JOBS, cell.path("jobs").asInt(), all);
            assertTrue(cell.has("others_to_unanticipated"), all);
            if (cell.path("others_to_unanticipated").asDouble() <= 0) {
                spoiled.add(cell.path("strategy").asText() + ": no best-effort work");   // it stood still
            }
        }
        assertEquals(0, GpuGoals.wrong(result));
        assertTrue(run.out().contains("best-effort work to that without anticipation"), run.out());
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
        return spoiled.isEmpty() ? null : spoiled + "; " + all;
    }

    /**
     * A process that stands still for longer than a period has no begin that could be expected, and its thread that
     * touches may stand still alone: then no job is late, either.
     */
    private static void untouched(final JsonNode cell, final List<String> spoiled) {
        if (cell.path("touches").asInt() <= 0) {
            spoiled.add("no touch; " + (cell.path("missed").asInt() + cell.path("skipped").asInt())
                + " jobs late by more than their period");
        }
    }

    @Test
    void shouldMeasureWhatASwitchOfContextsCosts() throws Exception {
        final Ended run = bench("--scenarios", "switch", "--strategies", "NONE,HINT");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertEquals(ExitCode.OK, run.status(), all);
        final JsonNode scenario = result.path("scenarios").path("switch");
        assertEquals(List.of("alone, touched", "one works between, no daemon", "the same, touched",
            "busy, hint 4 ms ahead"), strategies(scenario), all);
        for (final JsonNode cell : scenario.path("cells")) {
            assertEquals(10 * JOBS, cell.path("jobs").asInt(), all);
        }
        assertEquals(0, GpuGoals.wrong(result));
        RecordedRunsTest.assertFollows(root().resolve("out/bench/results.json"));
        assertTrue(goal(result, "3 idle contexts, 0.35 ms, not anticipated: p50").path("measured").isNull(), all);
    }
}
