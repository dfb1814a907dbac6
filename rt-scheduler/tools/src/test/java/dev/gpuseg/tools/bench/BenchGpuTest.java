/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import java.util.stream.StreamSupport;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;

/** Every kind of scenario in one run, its record, its goals; runs that fail. */
class BenchGpuTest extends BenchGpuRig {
    @Test
    void shouldMeasureEveryScenarioJudgeTheGoalsAndRecordTheRun() throws Exception {
        calibrateAsOnAGpu();
        final Ended run = bench(PATIENT, List.of(), "--scenarios", "long,levels,burst,pytorch",
            "--strategies", "NONE,BARE_BLOCKING,BLOCKING,OPTIMISTIC,HINT,"
            + "EXEC,HELD", "--require-goals");
        final JsonNode result = results();
        final String all = run.said() + "\n" + result.toPrettyString();
        assertTrue(result.path("simulated").asBoolean(), "what a stand-in gave is labelled so");
        final JsonNode scenarios = result.path("scenarios");
        assertEquals(List.of("long", "levels", "burst", "pytorch"), names(scenarios));
        assertEquals(List.of("default", "bare calls, blocking", "interrupt, blocking", "interrupt, optimistic",
            "interrupt, hint 2 ms ahead", "under exec"), strategies(scenarios.path("long")), all);
        assertEquals(List.of("default", "interrupt, optimistic", "interrupt, blocking"),
            strategies(scenarios.path("levels")));
        assertEquals(List.of("default", "interrupt, optimistic"), strategies(scenarios.path("burst")));
        final JsonNode pytorch = scenarios.path("pytorch");
        assertEquals(List.of("under exec", "default", "interrupt, optimistic", "under exec",
            "under exec, period declared", "launches held"), strategies(pytorch), all);
        assertEquals(List.of("0 1.0", "3 3.0", "3 1.0", "3 2.0", "3 2.0", "3 2.0"), ratios(pytorch), all);
        for (final JsonNode scenario : scenarios) {
            for (final JsonNode cell : scenario.path("cells")) {
                assertTrue(cell.has("response_ns") || cell.has("not_run"), () -> cell + "\n" + all);
            }
        }
        assertEquals(0, GpuGoals.wrong(result));
        final JsonNode blocking = scenarios.path("long").path("cells").get(2);
        final int calls = blocking.path("steps_ns").path("call").path("n").asInt();
        assertTrue(calls > 0 && calls <= JOBS, () -> "begins that took the others off: " + calls + "\n" + all);
        assertEquals(calls, blocking.path("steps_ns").path("grant_to_return").path("n").asInt());
        final JsonNode costs = scenarios.path("long").path("enforcement").get(0);
        assertEquals(3, costs.path("others").asInt());
        assertTrue(costs.path("begin_to_bare_p50").asDouble() > 0, all);
        assertTrue(costs.path("call_to_bare_p50").asDouble() > 0, all);
        assertTrue(scenarios.path("levels").path("cells").get(1).path("low").path("jobs").asInt() > 0, all);
        assertTrue(scenarios.path("burst").path("cells").get(1).path("later_ns").has("p50"), all);

        final JsonNode goals = result.path("goals");
        final boolean missed = StreamSupport.stream(goals.spliterator(), false)
            .anyMatch(goal -> goal.path("met").isBoolean() && !goal.path("met").asBoolean());
        assertEquals(missed ? ExitCode.NO : ExitCode.OK, run.status(), all);
        final JsonNode torch = goal(result, "PyTorch");
        assertEquals(1.0 / 3, torch.path("measured").asDouble(), 1e-4);
        assertTrue(torch.path("met").asBoolean());
        assertTrue(run.out().contains("SIMULATED") && run.out().contains("wrong results"), run.out());
        checkRecord();
    }

    private void checkRecord() throws Exception {
        final Path out = root().resolve("out");
        RecordedRunsTest.assertNamesEverything(out.resolve("manifest.json"));
        RecordedRunsTest.assertFollows(out.resolve("bench/results.json"));
        final JsonNode manifest = json(out.resolve("manifest.json"));
        assertEquals("Stand-in GPU", manifest.path("machine").path("gpu").asText());
        assertEquals(1, manifest.path("seed").asInt());
        assertTrue(manifest.path("runs").get(0).path("command").asText()
            .startsWith("gpuseg bench gpu --jobs 20 --out "), manifest.toString());
        assertEquals(0, manifest.path("wrong_results").asInt());
        assertTrue(manifest.has("commit") && manifest.has("xid_lines_in_dmesg") && manifest.has("privilege"));
        try (Stream<Path> files = Files.list(out.resolve("bench"))) {
            assertTrue(files.anyMatch(f -> f.getFileName().toString().equals("samples-long-3-blocking.csv")));
        }
        final var drawing = DocumentBuilderFactory.newInstance().newDocumentBuilder()
            .parse(out.resolve("bench/results.svg").toFile());
        assertTrue(drawing.getDocumentElement().getTextContent().contains("SIMULATED"));
        assertTrue(drawing.getDocumentElement().getTextContent().contains("ResNet-50"));
    }

    @Test
    void shouldFailWhereAResultIsWrongAndWhereWhatWasAskedForCannotRun() throws Exception {
        script(python(), "#!/bin/sh\nexit 1\n");
        final Ended run = bench(PATIENT, List.of("GPUSEG_CUDA_STANDIN_WRONG=1"), "--scenarios", "short,pytorch",
            "--strategies", "NONE");
        assertEquals(ExitCode.FAILURE, run.status(), run.said());
        final JsonNode scenarios = results().path("scenarios");
        assertTrue(scenarios.path("short").path("alone").path("wrong").asLong() > 0, run.said());
        assertTrue(scenarios.path("pytorch").path("not_run").asText().contains("torch"), run.said());
        assertFalse(scenarios.path("pytorch").has("cells"));
    }

    @Test
    void shouldFailWhereAProgramComputesSomethingElseUnderExec() throws Exception {
        script(root().resolve("path/wrong"), "");
        final Ended run = bench("--scenarios", "pytorch-eager", "--strategies", "OPTIMISTIC,EXEC");
        assertEquals(ExitCode.FAILURE, run.status(), run.said());
        final JsonNode scenario = results().path("scenarios").path("pytorch-eager");
        assertEquals(List.of("under exec", "interrupt, optimistic", "under exec", "under exec, period declared"),
            strategies(scenario), run.said());
        for (final JsonNode cell : scenario.path("cells")) {
            final boolean exec = cell.path("strategy").asText().startsWith("under exec");
            assertEquals(exec ? 1 : 0, cell.path("wrong").asInt(), cell.toString());
        }
        assertEquals(0, scenario.path("alone").path("wrong").asInt(-1), run.said());
    }

    /** Of each cell: processes beside it, p99 divided by that alone. */
    private static List<String> ratios(final JsonNode scenario) {
        return StreamSupport.stream(scenario.path("cells").spliterator(), false)
            .map(cell -> cell.path("others").asText() + " " + cell.path("p99_to_alone").asText()).toList();
    }

    private static List<String> names(final JsonNode node) {
        return node.properties().stream().map(java.util.Map.Entry::getKey).toList();
    }
}
