/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.Dossier;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultWriter;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.io.Verdict;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.report.HtmlReport;
import dev.gpuseg.analysis.report.JsonReport;
import dev.gpuseg.analysis.report.Report;
import dev.gpuseg.analysis.report.TextReport;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.BestEffortTurns;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Bounds by turns: theorem 16, with numbers that can be checked by hand, in us. */
class TurnsSuspendTest {
    private static final long US = 1_000;
    private static final String TURNS = ", turns: {slice: 500us, contexts: 2}";
    private static final String CAMERA = "{name: camera, cpu: 1, period: 40ms, priority: 70, segments: [{cpu: 2ms}, "
        + "{gpu: {host: 1ms, device: 5ms}}]}";

    private static TaskSet set(final String platform, final String... tasks) throws InvalidFileException {
        return new TaskSetReader().readText("version: 1\nid: s\nplatform: {cpus: 2, epsilon: 55ms, theta: 200us, "
            + "timeslice: 2ms, optimistic: true, clock: 1" + platform + "}\ntasks: ["
            + String.join(", ", tasks) + "]\n", "s.yaml");
    }

    private static long bound(final TaskSet set, final int task) {
        return Analyses.get("turns-suspend").analyse(set).tasks().get(task).wcrtNs() / US;
    }

    /** Own 8 ms, two contexts and one turn more of 0.7 ms, one switch, four calls. */
    @Test
    void shouldCountATurnOfEachContextAndOneMore() throws Exception {
        final TaskSet set = set(TURNS + ", newcomers: none", CAMERA);
        assertEquals(8_000 + 3 * 700 + 200 + 4 * 200, bound(set, 0));
        final TaskSet one = set(", turns: {slice: 500us, contexts: 1}, newcomers: none", CAMERA);
        assertEquals(8_000 + 2 * 700 + 200 + 2 * 200, bound(one, 0));
    }

    @Test
    void shouldCountAWaitForEachBurst() throws Exception {
        final TaskSet set = set(TURNS + ", newcomers: none", CAMERA.replace("5ms", "5ms, bursts: 3"));
        assertEquals(8_000 + 3 * (3 * 700 + 200) + 4 * 200, bound(set, 0));
    }

    /** Its slice, 2 ms, is the longest that a wait can meet, so it is the turn more, too; two calls for it. */
    @Test
    void shouldCountTheDriversSliceOfANewContext() throws Exception {
        final TaskSet set = set(TURNS + ", newcomers: {delay: 20ms, period: 100ms}", CAMERA);
        assertEquals(8_000 + 2 * 700 + 2 * 2_200 + 200 + 4 * 200 + 2 * 200, bound(set, 0));
    }

    /** The plan never has the GPU for longer than its jobs need: 3 ms and a switch, whatever its slice. */
    @Test
    void shouldCountOtherRealTimeContextsByTheirDemand() throws Exception {
        final String plan = "{name: plan, cpu: 2, period: 100ms, priority: 60, segments: [{gpu: {host: 0ms, device: "
            + "3ms}}]}";
        final TaskSet set = set(TURNS + ", newcomers: none", CAMERA, plan);
        assertEquals(8_000 + 3 * 700 + 3_200 + 200 + 4 * 200, bound(set, 0));
        assertArrayEquals(new long[] {BestEffortTurns.LONG_SLICE_NS, BestEffortTurns.LONG_SLICE_NS},
            TurnSlices.of(set));
    }

    /** Two turns of 15 ms and switches are 30.4 ms, of 10 ms 20.4 ms; with all else the camera needs 10.4 ms. */
    @Test
    void shouldShortenTheSlicesOfLowerTasksUntilHigherOnesKeepTheirDeadlines() throws Exception {
        final String plan = "{name: plan, cpu: 2, period: 200ms, priority: 60, segments: [{gpu: {host: 0ms, device: "
            + "30ms}}]}";
        final TaskSet set = set(TURNS + ", newcomers: none", CAMERA, plan);
        final long[] slices = TurnSlices.of(set);
        assertEquals(BestEffortTurns.LONG_SLICE_NS, slices[0]);
        assertEquals(10_000 * US, slices[1]);
        assertTrue(Analyses.get("turns-suspend").analyse(set).schedulable());
    }

    /** Own 8 ms, one wait of 0.9 ms, which contains all turns and the switch, and four calls. */
    @Test
    void shouldTakeAMeasuredWaitInPlaceOfSlicesAndContexts() throws Exception {
        final String measured = ", turns: {slice: 500us, contexts: 2, wait: 900us, samples: 600}";
        final TaskSet set = set(measured + ", newcomers: none", CAMERA);
        assertEquals(8_000 + 900 + 4 * 200, bound(set, 0));
        assertEquals(8_000 + 900 + 4 * 200 + 2 * 200, bound(set(measured
            + ", newcomers: {delay: 20ms, period: 100ms}", CAMERA), 0), "its turns are in the wait, its calls are not");
        assertEquals(8_000 + 3 * 900 + 4 * 200, bound(set(measured + ", newcomers: none", CAMERA.replace("5ms",
            "5ms, bursts: 3")), 0));
        final String plan = "{name: plan, cpu: 2, period: 100ms, priority: 60, segments: [{gpu: {host: 0ms, device: "
            + "3ms}}]}";
        assertEquals(8_000 + 900 + 3_200 + 4 * 200, bound(set(measured + ", newcomers: none", CAMERA, plan), 0));
        final Soundness sound = Soundness.of(Analyses.describe("turns-suspend"), set);
        assertEquals(List.of("U2", "U6"), sound.findings().stream().filter(Hypotheses.Finding::isOpen)
            .map(f -> f.hypothesis().id()).toList());
        assertTrue(sound.findings().stream().anyMatch(f -> f.detail().contains("a wait for best effort is at most "
            + "900us, measured with 2 best-effort contexts in 600 waits, so one is longer with a probability of at "
            + "most 0.50 %")), sound.findings().toString());
        final TaskSet again = new TaskSetReader().readText(TaskSetWriter.json(set), "again.json");
        assertEquals(new TurnLimits(500 * US, 2, 900 * US, 600, false), again.platform().limits().turns());
        assertTrue(TurnChoice.of(set).orElseThrow().lines().toString().contains("measured waits 0.9 ms"),
            TurnChoice.of(set).orElseThrow().lines().toString());
    }

    @Test
    void shouldNotClaimWhatTodaysDaemonDoesNotDo() throws Exception {
        final AnalysisDescription turns = Analyses.describe("turns-suspend");
        final Soundness one = Soundness.of(turns, set(TURNS + ", newcomers: none", CAMERA));
        assertEquals(Soundness.Verdict.CONDITIONAL, one.verdict(), one.text());
        assertEquals(List.of("U2", "U6"), one.findings().stream().filter(Hypotheses.Finding::isOpen)
            .map(f -> f.hypothesis().id()).toList());
        assertTrue(one.findings().stream().noneMatch(f -> List.of("M1", "M2", "M3").contains(f.hypothesis().id())));
        final Soundness two = Soundness.of(turns, set(TURNS, CAMERA, CAMERA.replace("camera", "plan").replace("70",
            "60")));
        assertEquals(Soundness.Verdict.NOT_SOUND, two.verdict());
        assertTrue(two.text().contains("U5: tasks \"camera\" and \"plan\" use one GPU"), two.text());
        assertTrue(Soundness.of(turns, set(TURNS + ", gpus: 2", CAMERA)).text().contains("U5: with 2 GPUs"));
        assertTrue(Soundness.of(turns, set(", turns: {slice: 80us, contexts: 2}", CAMERA)).text()
            .contains("U3: the daemon gives best effort slices of 100us, turns says 80us"));
    }

    @Test
    void shouldLeaveOpenWhetherBeginsWait() throws Exception {
        final TaskSet waits = new TaskSetReader().readText("version: 1\nid: s\nplatform: {cpus: 1, epsilon: 1ms" + TURNS
            + "}\ntasks: [" + CAMERA + "]\n", "s.yaml");
        final Soundness soundness = Soundness.of(Analyses.describe("turns-suspend"), waits);
        assertTrue(soundness.text().contains("U1: no real-time task waits in its begin (optimistic: true)"),
            soundness.text());
    }

    @Test
    void shouldRefuseWhatItDoesNotContain() throws Exception {
        assertEquals("platform: turns is missing, and turns-suspend bounds them; write turns: {slice: 100us, contexts: "
            + "2}", refusal(set("", CAMERA)));
        assertTrue(refusal(set(TURNS + ", stall: {length: 1ms, period: 1s}", CAMERA)).contains("which turns-suspend "
            + "does not contain"));
        assertTrue(refusal(set(TURNS, CAMERA.replace("cpu: 1,", "cpu: 1, process: p,"), CAMERA.replace("camera", "b")
            .replace("cpu: 1,", "cpu: 2, process: p,"))).contains("share process \"p\""));
    }

    private static String refusal(final TaskSet set) {
        return assertThrows(InvalidModelException.class, () -> Analyses.get("turns-suspend").analyse(set))
            .getMessage();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '"', value = {
        "turns: 500us | turns",
        "turns: {slice: 500us} | contexts",
        "turns: {contexts: 2} | slice",
        "turns: {slice: 0ms, contexts: 2} | slice",
        "turns: {slice: 500, contexts: 2} | unit",
        "turns: {slice: 500us, contexts: 0} | 1..1024",
        "turns: {slice: 500us, contexts: 1025} | 1..1024",
        "turns: {slice: 500us, contexts: 2, wait: 0ms} | wait",
        "turns: {slice: 500us, contexts: 2, wait: 3} | unit",
        "turns: {slice: 500us, contexts: 2, samples: 3} | wait is missing",
        "turns: {slice: 500us, contexts: 2, together: 1} | together",
        "turns: {slice: 500us, contexts: 2, length: 1ms} | length"})
    void shouldRefuseOtherTurnsInOneLine(final String text, final String expected) {
        final String said = assertThrows(InvalidFileException.class, () -> set(", " + text, CAMERA)).getMessage();
        assertTrue(said.contains(expected) && said.contains("turns") && said.lines().count() == 1, said);
    }

    @ParameterizedTest
    @CsvSource({"0", "-1", "1000001", "1ms", "many"})
    void shouldRefuseOtherBurstsInOneLine(final String bursts) {
        final String said = assertThrows(InvalidFileException.class, () -> set(TURNS, CAMERA.replace("5ms", "5ms, "
            + "bursts: " + bursts))).getMessage();
        assertTrue(said.contains("bursts") && said.lines().count() == 1, said);
    }

    @Test
    void shouldWriteWhatItReads() throws Exception {
        final TaskSet set = set(TURNS, CAMERA.replace("5ms", "5ms, bursts: 7"));
        final TaskSet again = new TaskSetReader().readText(TaskSetWriter.json(set), "again.json");
        assertEquals(new TurnLimits(500 * US, 2), again.platform().limits().turns());
        assertEquals(7, ((Segment.Gpu) again.tasks().get(0).segments().get(1)).bursts());
        assertEquals(set.tasks(), again.tasks());
    }

    @Test
    void shouldTakeTheBetterBoundAndSayWhichEverywhere() throws Exception {
        final TaskSet slow = set(TURNS + ", newcomers: none", CAMERA);
        final TurnChoice turns = TurnChoice.of(slow).orElseThrow();
        assertTrue(turns.takesTurns() && turns.analysis().name().equals("turns-suspend"));
        assertTrue(turns.lines().get(0).contains("begins with calls (gcaps-window-suspend) can miss a deadline; the "
            + "bounds are those of turns-suspend"), turns.lines().get(0));
        assertTrue(turns.lines().get(1).contains("best effort and new contexts 1.4 ms, other real-time contexts and "
            + "one turn more 0.7 ms, own switches 0.2 ms, calls for others 0.8 ms"), turns.lines().get(1));
        assertEquals("turns: turns-suspend accepts the set with slices of best effort up to 10ms",
            turns.lines().get(2));
        final TurnChoice both = TurnChoice.of(slow.withPlatform(slow.platform().withEpsilonNs(100 * US)))
            .orElseThrow();
        assertTrue(both.takesTurns(), "both accept it, and turns measure better");
        assertTrue(TurnChoice.of(set("", CAMERA)).isEmpty(), "the platform states no turns");
        final List<AnalysisResult> results = List.of(turns.analysis().analyse(slow));
        final Dossier dossier = new Dossier(null, Map.of(), null, turns);
        final String text = ResultWriter.text(slow, results, dossier);
        final String json = ResultWriter.json(slow, results, dossier);
        final Report report = Report.create(slow, results, dossier);
        final String html = HtmlReport.render(report);
        for (final String line : turns.lines()) {
            assertTrue(text.contains(line + "\n"), text);
            assertTrue(json.contains(line.replace("\"", "\\\"")), json);
            assertTrue(html.contains("<li>" + line.replace("\"", "&quot;") + "</li>"), html);
            assertTrue(TextReport.render(report).contains(line + "\n"), "text of the report");
            assertTrue(JsonReport.render(report).contains(line.replace("\"", "\\\"")), "JSON of the report");
        }
        assertTrue(json.contains("\"chosen\" : \"turns-suspend\""), json);
        assertTrue(text.contains("start `gpuseg run --admission enforce --taskset"), text);
        assertEquals(Verdict.Kind.CONDITIONAL, Verdict.of(slow, results, null).kind());
    }

    /** Two real-time tasks on one GPU: what accepts them does not run, so calls decide. */
    @Test
    void shouldNotTakeBoundsThatAreNotSound() throws Exception {
        final TaskSet two = set(TURNS + ", newcomers: none", CAMERA, CAMERA.replace("camera", "plan").replace("70",
            "60"));
        final TurnChoice choice = TurnChoice.of(two).orElseThrow();
        assertTrue(choice.turns().schedulable() && !choice.calls().schedulable() && !choice.takesTurns());
        assertTrue(choice.lines().get(1).contains("U5: "), choice.lines().get(1));
    }

    /** Two real-time tasks on one GPU that no policy disables: what accepts them runs, and everything says how. */
    @Test
    void shouldTakeTurnsOfSeveralTasksWhereNoneIsDisabled() throws Exception {
        final TaskSet two = set(TURNS.replace("2}", "2, together: true}") + ", newcomers: none", CAMERA,
            CAMERA.replace("camera", "plan").replace("70", "60").replace("cpu: 1", "cpu: 2"));
        final TurnChoice choice = TurnChoice.of(two).orElseThrow();
        assertTrue(choice.takesTurns(), choice.lines().get(0));
        assertTrue(choice.lines().get(0).endsWith("the bounds are those of turns-suspend, by which --admission enforce "
            + "runs the set under policy classes"), choice.lines().get(0));
        final Soundness sound = Soundness.of(Analyses.describe("turns-suspend"), two);
        assertTrue(sound.text().startsWith("sound for this scheduler with policy classes of class_width 99 at level 3, "
            + "if U2: "), sound.text());
        assertTrue(sound.findings().stream().anyMatch(f -> f.detail().startsWith("tasks share the GPU by slices")));
        final TaskSet again = new TaskSetReader().readText(TaskSetWriter.json(two), "again.json");
        assertEquals(two.platform().limits(), again.platform().limits());
        assertEquals("clock 1, no new contexts, turns of 500us slices, 2 contexts met, real-time tasks together",
            two.platform().limits().text());
        final TaskSet late = set(TURNS.replace("2}", "2, together: true}") + ", newcomers: none", CAMERA,
            CAMERA.replace("camera", "plan").replace("70", "60").replace("cpu: 1", "cpu: 2").replace("period:",
                "deadline: 9ms, period:"));
        assertTrue(TurnChoice.of(late).orElseThrow().lines().get(0).endsWith("the bounds are those of "
            + "gcaps-window-suspend, by which --admission enforce runs the set under policy fp, without turns"));
    }

    /** Turns have no bound for two tasks of one process, calls have: no choice, and no refusal of the whole set. */
    @Test
    void shouldLeaveTheChoiceToCallsWhereTurnsHaveNoBound() throws Exception {
        final TaskSet shared = set(TURNS + ", newcomers: none", CAMERA.replace("priority:", "process: p, priority:"),
            CAMERA.replace("camera", "plan").replace("70", "60").replace("priority:", "process: p, priority:"));
        assertTrue(TurnChoice.of(shared).isEmpty());
        assertEquals(2, Analyses.recommended(shared.mode()).analyse(shared).tasks().size());
    }

    @Test
    void shouldSimulateTurnsOnlyWhereTheyAreStated() throws Exception {
        final SimulationOptions options = SimulationOptions.ofDurationNs(400_000 * US).with(
            SimulationOptions.Scheduler.RR, SimulationOptions.CpuPolicy.FP).with(SimulationOptions.Hold.TURNS, true,
            SimulationOptions.Update.STALL);
        final Simulator simulator = new Simulator(set(TURNS, CAMERA));
        simulator.execute(options);
        assertTrue(simulator.maxResponseNs(0) > 8_000 * US, "somebody else had a turn");
        assertTrue(simulator.maxResponseNs(0) <= 11_100 * US);
        assertTrue(assertThrows(InvalidModelException.class, () -> new Simulator(set("", CAMERA)).execute(options))
            .getMessage().contains("turns is missing"));
        assertTrue(assertThrows(InvalidModelException.class, () -> new Simulator(set(TURNS + ", stall: {length: 1ms, "
            + "period: 1s}", CAMERA)).execute(options)).getMessage().contains("stall"));
        assertTrue(assertThrows(InvalidModelException.class, () -> simulator.execute(options.with(
            SimulationOptions.Scheduler.FP, SimulationOptions.CpuPolicy.FP))).getMessage().contains("scheduler rr"));
        assertTrue(assertThrows(IllegalArgumentException.class, () -> simulator.setSlices(new long[2])).getMessage()
            .contains("2 time slices for 1 tasks"));
    }
}
