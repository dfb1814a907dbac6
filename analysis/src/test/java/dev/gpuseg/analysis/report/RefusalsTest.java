/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RefusalsTest {
    private static final Analysis ANALYSIS = Analyses.get("gcaps-window-suspend");

    @TempDir
    private Path directory;

    private TaskSet set(final String... tasks) throws IOException {
        return new TaskSetReader().read(Files.writeString(directory.resolve("set.yaml"),
            "version: 1\nplatform: {cpus: 2, epsilon: 1ms, theta: 200us}\ntasks:\n  - "
            + String.join("\n  - ", tasks) + "\n"));
    }

    private static List<String> why(final TaskSet set) {
        return Refusals.of(ANALYSIS, set, ANALYSIS.analyse(set));
    }

    @Test
    void shouldSayNothingOfASetThatPasses() throws IOException {
        assertEquals(List.of(), why(set("{name: a, cpu: 1, period: 20ms, priority: 5, segments: [{cpu: 1ms}]}")));
    }

    @Test
    void shouldSayThatATaskExceedsItsOwnPeriodAndByHowMuch() throws IOException {
        final List<String> lines = why(set("{name: camera, cpu: 1, period: 20ms, priority: 70, segments: [{cpu: 15ms}, "
            + "{gpu: {host: 2ms, device: 6ms}}]}"));
        assertTrue(lines.get(0).startsWith("task \"camera\": its own execution, 23 ms (CPU 15, GPU 8), exceeds its "
            + "deadline 20 ms and its period 20 ms"), lines.toString());
        assertTrue(lines.get(0).contains("shorten it by 3 ms"), lines.toString());
    }

    @Test
    void shouldSayThatEnforcementIsWhatDoesNotFit() throws IOException {
        final List<String> lines = why(set("{name: quick, cpu: 1, period: 20ms, deadline: 3ms, priority: 70, segments: "
            + "[{cpu: 1ms}, {gpu: {host: 0ms, device: 1500us}}]}"));
        assertTrue(lines.get(0).contains("even alone it does not fit") && lines.get(0).contains("epsilon"),
            lines.toString());
    }

    @Test
    void shouldNameWhoHasTheSamePriorityAndThatAnotherOrderHelps() throws IOException {
        final List<String> lines = why(set(
            "{name: a, cpu: 1, period: 20ms, deadline: 12ms, priority: 60, segments: [{cpu: 6ms}]}",
            "{name: b, cpu: 1, period: 40ms, priority: 60, segments: [{cpu: 10ms}]}"));
        assertTrue(lines.get(0).contains("it and \"b\" (equal priority 60, same core 1) delay each other"),
            lines.toString());
        assertTrue(lines.get(lines.size() - 1).contains("other priorities (--assign dm)"), lines.toString());
    }

    @Test
    void shouldOfferOnlyRemediesWithWhichTheSetPasses() throws IOException {
        final TaskSet set = set(
            "{name: a, cpu: 1, period: 20ms, priority: 60, segments: [{cpu: 8ms}]}",
            "{name: b, cpu: 1, period: 25ms, priority: 50, segments: [{cpu: 14ms}]}");
        final List<String> lines = why(set);
        assertTrue(lines.get(0).startsWith("task \"b\": alone it fits; it has a bound without \"a\""),
            lines.toString());
        final Matcher shrunk = Pattern.compile("the CPU work of \"b\" shortened to ([0-9.]+) %")
            .matcher(lines.get(lines.size() - 1));
        assertTrue(shrunk.find(), lines.toString());
        final long permille = Math.round(Double.parseDouble(shrunk.group(1)) * 10);
        assertTrue(ANALYSIS.analyse(set(
            "{name: a, cpu: 1, period: 20ms, priority: 60, segments: [{cpu: 8ms}]}",
            "{name: b, cpu: 1, period: 25ms, priority: 50, segments: [{cpu: " + 14 * permille + "us}]}"))
            .schedulable());
        assertFalse(ANALYSIS.analyse(set).schedulable());
    }

    @Test
    void shouldNotCallASetImpossibleThatASufficientTestRefuses() throws IOException {
        final TaskSet set = set(
            // U = 34/35, which the earliest deadline first keeps
            "{name: a, cpu: 1, period: 5ms, priority: 2, segments: [{cpu: 2ms}]}",
            "{name: b, cpu: 1, period: 7ms, priority: 1, segments: [{cpu: 4ms}]}");
        final Analysis byDeadline = Analyses.get("edf-edf-suspend");
        final String said = String.join("\n", Refusals.of(byDeadline, set, byDeadline.analyse(set)));
        assertTrue(said.contains("with them none within its deadline"), said);
        assertTrue(said.contains("the test is sufficient, not exact: the set may hold all the same"), said);
        assertFalse(said.contains("not fit"), said);
    }
}
