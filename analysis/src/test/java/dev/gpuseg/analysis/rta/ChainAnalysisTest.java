/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.report.HtmlReport;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.analysis.report.TextReport;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.List;
import org.junit.jupiter.api.Test;

class ChainAnalysisTest {
    private static final long MS = 1_000_000L;
    private static final String CPUS = "platform: {cpus: 3}\ntasks:\n";
    private static final Analysis WINDOWS = Analyses.get("gcaps-window-suspend");

    private static TaskSet set(final String tasksAndChains) throws Exception {
        return new TaskSetReader().readText("id: set\n" + CPUS + tasksAndChains, "set.yaml");
    }

    private static TaskSet twoTasks(final String edge, final String limits) throws Exception {
        return set("  - {name: camera, cpu: 1, period: 10ms, max_period: 10ms, priority: 9, segments: [{cpu: 2ms}]}\n"
            + "  - {name: brake, cpu: 2, period: 10ms, priority: 8, segments: [{cpu: 3ms}]"
            + (edge.equals("event") ? "" : ", max_period: 12ms") + "}\n"
            + "chains:\n  - {name: stop, tasks: [camera, brake], edges: " + edge + limits + "}\n");
    }

    private static ChainResult chain(final TaskSet set) {
        return WINDOWS.analyse(set).chains().get(0);
    }

    @Test
    void shouldAddWaitAndResponseOfTasksThatSample() throws Exception {
        final ChainResult chain = chain(twoTasks("sampling", ""));
        assertEquals(10 * MS + 2 * MS + 12 * MS + 3 * MS, chain.reaction().boundNs());
        assertEquals(10 * MS + 2 * MS + 3 * MS, chain.age().boundNs());
        assertEquals("brake", chain.dominant().task());
        assertTrue(chain.schedulable());
    }

    @Test
    void shouldWaitForTheFirstSampleOnlyWhereEventsReleaseTheOthers() throws Exception {
        final AnalysisResult result = WINDOWS.analyse(twoTasks("event", ""));
        final ChainResult chain = result.chains().get(0);
        assertEquals(10 * MS + 5 * MS, chain.reaction().boundNs());
        assertEquals(5 * MS, chain.age().boundNs());
        assertEquals(List.of(new ChainResult.Step("camera", "input", 10 * MS, 2 * MS, false),
            new ChainResult.Step("brake", "event", 0, 3 * MS, true)), chain.steps());
        // each task from its own release
        assertEquals(3 * MS, result.tasks().get(1).wcrtNs());
        assertEquals(3 * MS, result.tasks().get(1).terms().totalNs());
    }

    @Test
    void shouldRefuseAChainThatPassesItsLimitThoughEveryTaskKeepsItsDeadline() throws Exception {
        final TaskSet exact = twoTasks("sampling", ", reaction: 27ms, age: 15ms");
        assertTrue(WINDOWS.analyse(exact).schedulable());
        final AnalysisResult late = WINDOWS.analyse(twoTasks("sampling", ", reaction: 26.999ms, age: 15ms"));
        assertFalse(late.schedulable());
        assertTrue(late.tasks().stream().allMatch(task -> task.schedulable()));
        assertFalse(late.chains().get(0).reaction().holds());
        assertTrue(late.chains().get(0).age().holds());
        assertFalse(WINDOWS.analyse(twoTasks("sampling", ", age: 14.999ms")).schedulable());
    }

    /** A late predecessor and then an early one bring two jobs of its successor close together. */
    private static TaskSet bunched() throws Exception {
        return set("  - {name: a, cpu: 1, period: 10ms, max_period: 10ms, priority: 9, segments: [{cpu: 6ms}]}\n"
            + "  - {name: b, cpu: 2, period: 10ms, priority: 8, segments: [{cpu: 3ms}]}\n"
            + "  - {name: c, cpu: 2, period: 20ms, priority: 7, segments: [{cpu: 4ms}]}\n"
            + "chains:\n  - {name: ab, tasks: [a, b], edges: event}\n");
    }

    @Test
    void shouldChargeTheJitterOfAReleasedTaskToThoseBelowIt() throws Exception {
        final AnalysisResult result = WINDOWS.analyse(bunched());
        assertEquals(10 * MS, result.tasks().get(2).wcrtNs());
        assertEquals(7 * MS, WINDOWS.analyse(bunched().withChains(Chains.NONE)).tasks().get(2).wcrtNs());
        // b: 6 ms until a ends and 3 ms of its own
        assertEquals(10 * MS + 9 * MS, result.chains().get(0).reaction().boundNs());
    }

    @Test
    void shouldExceedInSimulationWhatIsComputedWithoutThatJitter() throws Exception {
        final TaskSet set = bunched();
        final Simulator simulator = new Simulator(set);
        long longest = 0;
        for (long seed = 1; seed <= 300; seed++) {
            simulator.execute(SimulationOptions.ofDurationNs(400 * MS).withSeed(seed)
                .with(Arrivals.PERIODIC, Offsets.RANDOM, Execution.RANDOM, Jitter.NONE));
            longest = Math.max(longest, simulator.maxResponseNs(2));
        }
        assertTrue(longest > 7 * MS, "longest response " + longest);
        assertTrue(longest <= 10 * MS, "longest response " + longest);
    }

    /** The predecessor lies below its successor on one core: each depends on the other. */
    @Test
    void shouldComeToRestWhereASuccessorDelaysItsPredecessor() throws Exception {
        final AnalysisResult result = WINDOWS.analyse(set(
            "  - {name: a, cpu: 1, period: 20ms, max_period: 20ms, priority: 5, segments: [{cpu: 4ms}]}\n"
            + "  - {name: b, cpu: 1, period: 20ms, priority: 8, segments: [{cpu: 3ms}]}\n"
            + "chains:\n  - {name: ab, tasks: [a, b], edges: event}\n"));
        // R_a = 4 + ceil((R_a + J_b) / 20) 3 = 7 with J_b = R_a = 7; from the arrival of a to the end of b: 7 + 3
        assertEquals(7 * MS, result.tasks().get(0).wcrtNs());
        assertEquals(3 * MS, result.tasks().get(1).wcrtNs());
        assertEquals(10 * MS, result.chains().get(0).age().boundNs());
    }

    @Test
    void shouldGiveNoBoundWhereAnEventMayComeAPeriodLate() throws Exception {
        final AnalysisResult result = WINDOWS.analyse(set(
            "  - {name: a, cpu: 1, period: 10ms, max_period: 10ms, priority: 9, segments: [{cpu: 6ms}]}\n"
            + "  - {name: b, cpu: 2, period: 10ms, priority: 8, segments: [{cpu: 5ms}]}\n"
            + "  - {name: c, cpu: 3, period: 10ms, priority: 7, segments: [{cpu: 1ms}]}\n"
            + "chains:\n  - {name: abc, tasks: [a, b, c], edges: event, age: 100ms}\n"));
        assertFalse(result.schedulable());
        assertNull(result.tasks().get(1).wcrtNs());
        assertNull(result.tasks().get(2).wcrtNs());
        assertFalse(result.chains().get(0).schedulable());
        assertTrue(result.chains().get(0).problem().contains("task \"b\" has no response-time bound"),
            result.chains().get(0).problem());
    }

    @Test
    void shouldRefuseEventEdgesWhereDeadlinesDecide() throws Exception {
        final AnalysisResult result = Analyses.get("edf-edf-suspend").analyse(twoTasks("event", ""));
        assertFalse(result.schedulable());
        assertNull(result.tasks().get(0).wcrtNs());
        assertTrue(result.chains().get(0).problem().contains("event edges have no proof for edf-edf-suspend"));
        assertTrue(Analyses.get("edf-edf-suspend").analyse(twoTasks("sampling", "")).schedulable());
    }

    @Test
    void shouldWaitForTheArrivalsOfTheTaskThatReleasesIt() throws Exception {
        final ChainResult chain = WINDOWS.analyse(set(
            "  - {name: a, cpu: 1, period: 10ms, max_period: 11ms, priority: 9, segments: [{cpu: 2ms}]}\n"
            + "  - {name: b, cpu: 2, period: 10ms, priority: 8, segments: [{cpu: 3ms}]}\n"
            + "  - {name: c, cpu: 3, period: 50ms, max_period: 50ms, priority: 7, segments: [{cpu: 1ms}]}\n"
            + "chains:\n  - {name: cb, tasks: [c, b]}\n  - {name: ab, tasks: [a, b], edges: event}\n"))
            .chains().get(0);
        assertEquals(50 * MS + MS + 11 * MS + 5 * MS, chain.reaction().boundNs());
    }

    @Test
    void shouldSayTheSameAsTextJsonAndHtml() throws Exception {
        final TaskSet set = twoTasks("sampling", ", reaction: 26ms, age: 15ms");
        final AnalysisResult result = WINDOWS.analyse(set);
        final String text = ResultWriter.text(set, List.of(result));
        assertTrue(text.contains("chain stop: reaction 27 of 26 ms MISS, age 15 of 15 ms ok"), text);
        assertTrue(text.contains("longest, 55 %"), text);
        assertTrue(text.contains("chains [sound for this scheduler with policy fp at level 3; for chains also"), text);
        final JsonNode json = new ObjectMapper().readTree(ResultWriter.json(set, List.of(result)))
            .get("results").get("gcaps-window-suspend");
        assertFalse(json.get("schedulable").asBoolean());
        final JsonNode chain = json.get("chains").get(0);
        assertEquals(27 * MS, chain.get("reaction_ns").asLong());
        assertEquals(26 * MS, chain.get("reaction_deadline_ns").asLong());
        assertEquals("brake", chain.get("dominant").asText());
        assertEquals(12 * MS, chain.get("steps").get(1).get("wait_ns").asLong());
        final Report report = Report.create(set, new byte[0], List.of(result));
        assertTrue(HtmlReport.render(report).contains("data-chain=\"stop\""));
        assertTrue(HtmlReport.render(report).contains("data-key=\"reaction\" data-ns=\"27000000\""));
        assertTrue(TextReport.render(report).contains("chain stop: reaction"));
        final String unsound = ResultWriter.text(set, List.of(Analyses.get("gcaps-suspend").analyse(set)));
        assertTrue(unsound.contains("chains [not sound for this scheduler: M1: "), unsound);
    }

    @Test
    void shouldNameTheHypothesisThatTheSetBreaksInTheClaimOfAChain() throws Exception {
        final TaskSet set = new TaskSetReader().readText("""
            id: sleeps
            mode: suspend
            platform: {cpus: 2, epsilon: 1ms}
            tasks:
              - {name: camera, cpu: 1, period: 40ms, max_period: 40ms, priority: 9,
                 segments: [{gpu: {host: 1ms, device: 2ms}}]}
              - {name: brake, cpu: 2, period: 40ms, max_period: 40ms, priority: 8, segments: [{cpu: 3ms}]}
            chains:
              - {name: stop, tasks: [camera, brake]}
            """, "set.yaml");
        final AnalysisResult spins = Analyses.get("gcaps-window-busy").analyse(set);
        final String expected = "not sound for this scheduler: M5: the set has mode: suspend, the analysis is for "
            + "mode: busy (a bound on a chain is a sum of bounds of its tasks)";
        assertTrue(ResultWriter.text(set, List.of(spins)).contains("chains [" + expected + "]"),
            ResultWriter.text(set, List.of(spins)));
        for (final String json : List.of(ResultWriter.json(set, List.of(spins)), ResultWriter.line(set,
            List.of(spins)))) {
            assertEquals(expected, new ObjectMapper().readTree(json).at("/results/gcaps-window-busy/chains/0/claim")
                .asText());
        }
        final Report report = Report.create(set, new byte[0], List.of(spins));
        assertTrue(HtmlReport.render(report).contains(expected), "HTML");
        assertTrue(spins.schedulable() && !HtmlReport.render(report).contains("badge yes"), "nothing is proven");
        assertTrue(TextReport.render(report).contains(expected), "text report");
        final AnalysisResult boost = Analyses.get("gcaps-boost-suspend").analyse(set);
        assertTrue(ResultWriter.text(set, List.of(boost)).contains("chains [sound for this scheduler with policy fp at "
            + "level 3, if M8: "), "a condition is one of the chain, too");
    }
}
