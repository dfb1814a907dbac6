/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.model.MissLimit;
import dev.gpuseg.analysis.model.Overload;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.report.HtmlReport;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.analysis.report.TextReport;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationResult;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Theorem 13 of {@code docs/misses.md}: known answers, refusals, and what reports say. */
class WeaklyHardTest {
    private static final long MS = 1_000_000L;
    private static final Analysis WINDOWS = Analyses.get("gcaps-window-suspend");

    /** rare runs 6 ms every second at most; without it control needs 3 ms of its 5, with it 9 of 10. */
    private static TaskSet set(final String control, final String rare) throws InvalidFileException {
        return set(control, rare, "1s", "6ms");
    }

    private static TaskSet set(final String control, final String rare, final String period, final String time)
        throws InvalidFileException {
        return new TaskSetReader().readText("""
            id: rare
            platform: {cpus: 1}
            tasks:
              - {name: rare, cpu: 1, period: %s, priority: 20, %s segments: [{cpu: %s}]}
              - {name: control, cpu: 1, period: 10ms, deadline: 5ms, priority: 10, %s segments: [{cpu: 3ms}]}
            """.formatted(period, rare, time, control), "set.yaml");
    }

    private static final String LIMIT = "max_period: 10ms, weakly_hard: {misses: 2, jobs: 20},";
    private static final String RARE = "overload: {period: 1s},";

    @Test
    void shouldBoundTheMissesThatOneOverloadJobCanCause() throws Exception {
        final AnalysisResult result = WINDOWS.analyse(set(LIMIT, RARE));
        final MissBound control = result.misses().get(0);
        // W = 3 + 6 ms: one job of control; 19 periods and W: one arrival of rare
        assertEquals(1L, control.bound());
        assertEquals(9 * MS, control.lateNs());
        assertEquals(3 * MS, control.usualNs());
        assertTrue(control.holds() && result.schedulable());
        assertEquals(9 * MS, result.tasks().get(1).wcrtNs());
        assertEquals(5 * MS, result.tasks().get(1).deadlineNs());
        assertTrue(result.tasks().get(1).schedulable(), "it may be late that often");
        assertFalse(WINDOWS.analyse(set("", RARE)).schedulable(), "without a limit no job may be late");
        assertFalse(WINDOWS.analyse(set(LIMIT.replace("misses: 2", "misses: 0"), RARE)).schedulable());
        assertEquals(2L, WINDOWS.analyse(set(LIMIT.replace("jobs: 20", "jobs: 150"), RARE)).misses().get(0).bound(),
            "150 jobs meet two");
    }

    @Test
    void shouldMissAsOftenAsTheBoundSays() throws Exception {
        final TaskSet set = set(LIMIT.replace("jobs: 20", "jobs: 150"), RARE);
        final Simulator simulator = new Simulator(set);
        final SimulationResult seen = simulator.run(SimulationOptions.ofDurationNs(3_000 * MS), null);
        assertEquals(3, seen.tasks().get(1).misses(), "at 0, 1 s and 2 s");
        assertEquals(2, seen.tasks().get(1).mostMisses());
        assertFalse(seen.anyRealTimeMiss(), "2 of 150 are allowed");
        assertTrue(new Simulator(set(LIMIT.replace("misses: 2, jobs: 20", "misses: 1, jobs: 150"), RARE))
            .run(SimulationOptions.ofDurationNs(3_000 * MS), null).anyRealTimeMiss(), "one of 150 is allowed");
    }

    @Test
    void shouldSayWhyThereIsNoBound() throws Exception {
        assertProblem("max_period", WINDOWS, set("weakly_hard: {misses: 2, jobs: 20},", RARE));
        assertProblem("without an overload job", WINDOWS, set(LIMIT, ""));
        assertProblem("so often", WINDOWS, set(LIMIT.replace("misses: 2, jobs: 20", "misses: 1, jobs: 3"),
            "overload: {period: 10ms},", "10ms", "6ms"));
        assertProblem("unfinished when the next one arrives", WINDOWS, set(LIMIT, RARE, "1s", "12ms"));
        assertProblem("gcaps-boost-suspend bounds no misses", Analyses.get("gcaps-boost-suspend"), set(LIMIT, RARE));
    }

    private static void assertProblem(final String expected, final Analysis analysis, final TaskSet set) {
        final AnalysisResult result = analysis.analyse(set);
        assertFalse(result.schedulable(), expected);
        assertNull(result.misses().get(0).bound(), expected);
        assertTrue(result.misses().get(0).problem().contains(expected), result.misses().get(0).problem());
    }

    /** A task may overload by itself: it is late then, and makes others late. */
    @Test
    void shouldTakeTypicalTimesForTheJobsWithoutOverload() throws Exception {
        final TaskSet set = new TaskSetReader().readText("""
            platform: {cpus: 2, epsilon: 1ms}
            tasks:
              - {name: map, cpu: 1, period: 100ms, priority: 20, overload: {period: 5s, typical: 25},
                 segments: [{cpu: 2ms}, {gpu: {host: 2ms, device: 40ms}}]}
              - {name: track, cpu: 2, period: 100ms, max_period: 100ms, deadline: 40ms, priority: 10,
                 weakly_hard: {misses: 2, jobs: 40}, segments: [{cpu: 1ms}, {gpu: {host: 1ms, device: 10ms}}]}
            """, "set.yaml");
        final AnalysisResult result = WINDOWS.analyse(set);
        assertTrue(result.schedulable(), result.misses().toString());
        final MissBound track = result.misses().get(0);
        assertTrue(track.lateNs() > 40 * MS && track.usualNs() <= 40 * MS, track.toString());
        assertEquals(1L, track.bound(), "one overload job in 4 s, and W is shorter than a period");
    }

    @Test
    void shouldBoundNoMissesWhereTasksShareAProcess() throws Exception {
        final TaskSet shared = new TaskSetReader().readText("""
            platform: {cpus: 2, epsilon: 1ms}
            tasks:
              - {name: a, cpu: 1, period: 100ms, deadline: 8ms, priority: 20, process: p, max_period: 100ms,
                 weakly_hard: {misses: 1, jobs: 4}, segments: [{gpu: {host: 1ms, device: 2ms}}]}
              - {name: b, cpu: 2, period: 100ms, priority: 10, process: p, overload: {period: 10s},
                 segments: [{gpu: {host: 1ms, device: 20ms}}]}
            """, "set.yaml");
        assertProblem("share a process", WINDOWS, shared);
    }

    @Test
    void shouldRefuseImpossibleNumbersInOneLine() {
        assertRefused("misses", LIMIT.replace("misses: 2", "misses: 20"), RARE);
        assertRefused("jobs", LIMIT.replace("jobs: 20", "jobs: 0"), RARE);
        assertRefused("typical", LIMIT, "overload: {period: 1s, typical: 100},");
        assertRefused("overload: period is 500ms, shorter than the period 1s", LIMIT, "overload: {period: 500ms},");
        assertRefused("unknown key 'typcial'", LIMIT, "overload: {period: 1s, typcial: 5},");
    }

    private static void assertRefused(final String expected, final String control, final String rare) {
        final String text = assertThrows(InvalidFileException.class, () -> set(control, rare)).getMessage();
        assertTrue(text.contains(expected), text);
    }

    @Test
    void shouldKeepBothKeysThroughAWrittenFile() throws Exception {
        final TaskSet set = set(LIMIT, "overload: {period: 1500ms, typical: 40},");
        final TaskSet again = new TaskSetReader().readText(TaskSetWriter.line(set), "set.json");
        assertEquals(set.tasks(), again.tasks());
        assertEquals(new MissLimit(2, 20), again.tasks().get(1).missLimit());
        assertEquals(new Overload(1_500 * MS, 40), again.tasks().get(0).overload());
        assertEquals(set.tasks().get(1), set.tasks().get(1).withPlacement(2, 0).withPlacement(1, 0));
    }

    @Test
    void shouldSayTheSameAsTextJsonAndHtml() throws Exception {
        final TaskSet set = set(LIMIT, RARE);
        final AnalysisResult result = WINDOWS.analyse(set);
        final String text = ResultWriter.text(set, List.of(result));
        assertTrue(text.contains("task control: at most 1 of 20 jobs late, limit 2 ok"), text);
        final JsonNode json = new ObjectMapper().readTree(ResultWriter.json(set, List.of(result)))
            .at("/results/gcaps-window-suspend/misses/0");
        assertEquals("control", json.path("task").asText());
        assertEquals(1, json.path("bound").asInt());
        assertEquals(2, json.path("limit").asInt());
        assertEquals(20, json.path("jobs").asInt());
        final Report report = Report.create(set, new byte[0], List.of(result));
        assertTrue(HtmlReport.render(report).contains("data-misses=\"control\""), "HTML");
        assertTrue(TextReport.render(report).contains("task control: at most 1 of 20 jobs late"), "text report");
        final Soundness soundness = Soundness.of(WINDOWS.description(), set);
        assertTrue(soundness.findings().stream().anyMatch(f -> f.hypothesis() == Hypothesis.W1), "W1 is listed");
    }
}
