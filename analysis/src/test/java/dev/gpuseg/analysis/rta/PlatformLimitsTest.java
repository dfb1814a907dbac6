/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.TaskSetWriter;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Hypotheses.Finding;
import dev.gpuseg.analysis.rta.Hypotheses.Status;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a platform states of the clock, of new contexts and of its measurements, and what follows for the bounds. */
class PlatformLimitsTest {
    private static final long MS = Sets.MS;
    private static final String WINDOW = "gcaps-window-suspend";

    /** One task of 10 ms on the GPU below one of 100 ms that came first, so that an update is in progress. */
    private static TaskSet file(final String platform) throws InvalidFileException {
        return new TaskSetReader().readText("version: 1\nid: x\nplatform: {cpus: 2, epsilon: 55ms" + platform + "}\n"
            + "mode: suspend\ntasks:\n"
            + "  - {name: h, cpu: 1, period: 900ms, deadline: 900ms, priority: 80,"
            + " segments: [{gpu: {host: 0ms, device: 10ms}}]}\n"
            + "  - {name: l, cpu: 2, period: 900ms, priority: 40,"
            + " segments: [{gpu: {host: 0ms, device: 100ms}}]}\n", "x");
    }

    private static long bound(final TaskSet set) {
        return Analyses.get(WINDOW).analyse(set).tasks().get(0).wcrtNs();
    }

    private static Soundness claim(final TaskSet set) {
        return Soundness.of(Analyses.describe(WINDOW), set);
    }

    private static Finding finding(final TaskSet set, final Hypothesis hypothesis) {
        return claim(set).findings().stream().filter(f -> f.hypothesis() == hypothesis).findFirst().orElseThrow();
    }

    /** h begins while an update is in progress, and a process comes: 55 + 55 + 55 ms of updates, 10 of work. */
    @Test
    void shouldBoundWhatAProcessThatComesCosts() throws Exception {
        assertEquals(120 * MS, bound(file("")));
        assertTrue(bound(file(", newcomers: {delay: 55ms, period: 500ms}")) >= 175 * MS);
        assertEquals(120 * MS, bound(file(", newcomers: none")));
    }

    @Test
    void shouldMakeEveryBoundConditionalOnNewContextsUntilThePlatformSpeaksOfThem() throws Exception {
        final Soundness silent = claim(file(", clock: 1"));
        assertEquals(Soundness.Verdict.CONDITIONAL, silent.verdict());
        assertTrue(silent.text().contains("if N1: no process makes a context of the GPU while a real-time task is open "
            + "(newcomers: none, or newcomers: {delay: 60ms, period: 2s})"), silent.text());
        for (final String said : List.of("none", "{delay: 55ms, period: 2s}")) {
            final TaskSet set = file(", clock: 1, newcomers: " + said);
            assertEquals(Soundness.Verdict.SOUND, claim(set).verdict(), said);
            assertEquals(Status.WATCHED, finding(set, Hypothesis.N1).status());
            assertTrue(finding(set, Hypothesis.N1).detail().contains("gpu_contexts"), said);
        }
    }

    /** The simulator lets a new context work and be disabled: never above the bound, and above the one without. */
    @Test
    void shouldExceedTheBoundWithoutNewcomersWhereOneComes() throws Exception {
        final TaskSet set = file(", newcomers: {delay: 60ms, period: 500ms}");
        assertTrue(worst(set, 900) > 120 * MS && worst(set, 900) <= bound(set), "simulated " + worst(set, 900));
    }

    private static long worst(final TaskSet set, final long periodMs) {
        final Simulator simulator = new Simulator(set);
        simulator.setFirstArrivals(set.tasks().size() == 2 ? new long[] {1, 0} : null);
        long worst = 0;
        for (int seed = 0; seed < 200; seed++) {
            simulator.execute(SimulationOptions.ofDurationNs(3 * periodMs * MS).withSeed(seed));
            worst = Math.max(worst, simulator.maxResponseNs(0));
        }
        return worst;
    }

    /** Alone, updates cost nothing: 40 ms of work and whole delays of 4 ms, of which at most three lie in 52 ms. */
    @Test
    void shouldTakeTheDelayOfEachNewContextFromTheGpuAndNoMore() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("t", 1, 1, 100, Sets.gpu(0, 40)));
        final TaskSet visited = set.withPlatform(set.platform().withLimits(new PlatformLimits(0, false, 4 * MS, 25 * MS,
            0, 0)));
        assertEquals(40 * MS, worst(set, 100));
        final long worst = worst(visited, 100);
        assertTrue(worst >= 48 * MS && worst <= 52 * MS, "simulated " + worst);
        assertEquals(52 * MS, bound(visited));
    }

    /** At the lowest clock a device part takes exactly as much longer as declared, and its host part does not. */
    @Test
    void shouldSimulateTheLowestClock() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("t", 1, 1, 100, Sets.gpu(3, 20)));
        assertEquals(33 * MS, worst(set.withPlatform(set.platform().withLimits(new PlatformLimits(1500, true, 0, 0, 0,
            0))), 100));
    }

    @Test
    void shouldCountDevicePartsLongerByTheClock() throws Exception {
        final TaskSet set = file(", clock: 1.5");
        assertEquals(new Segment.Gpu(0, 15 * MS, 15 * MS), set.slowed().tasks().get(0).segments().get(0));
        assertEquals(bound(file("")) + 5 * MS, bound(set));
        assertEquals(set.slowed(), set.slowed().slowed(), "once");
        assertTrue(set.platform().caveat().contains("clock 1.5: every device time counts so many times as declared"));
    }

    /** Work of host and device that overlaps: the total grows by what the device part grows. */
    @Test
    void shouldLeaveHostPartsToTheHost() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 1, Sets.task("t", 1, 1, 100, new Segment.Gpu(3, 4, 5)));
        final TaskSet slower = set.withPlatform(set.platform().withLimits(new PlatformLimits(2000, true, 0, 0, 0, 0)));
        assertEquals(List.of(new Segment.Gpu(3, 8, 9)), slower.slowed().tasks().get(0).segments());
    }

    @Test
    void shouldMakeEveryBoundConditionalOnTheClockUntilThePlatformSpeaksOfIt() throws Exception {
        final Soundness silent = claim(file(", newcomers: none"));
        assertEquals(Soundness.Verdict.CONDITIONAL, silent.verdict());
        assertTrue(silent.text().contains("if K1: device parts were measured at the lowest clock"), silent.text());
        assertEquals(Status.TO_ENSURE, finding(file(", clock: 1"), Hypothesis.K1).status());
    }

    @Test
    void shouldSayWhatTheSamplesOfEpsilonCanSay() throws Exception {
        final String detail = finding(file(", contexts: 4, samples: 202"), Hypothesis.M2).detail();
        assertTrue(detail.contains("measured with 4 contexts in 202 updates") && detail.contains("at most 1.49 %"),
            detail);
        assertFalse(finding(file(""), Hypothesis.M2).detail().contains("measured"), "nothing is known of it");
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', value = {
        "clock: 0.9 | 1..10 with three digits", "clock: 11 | 1..10", "clock: 1.5555 | three digits",
        "clock: fast | like clock: 1.53", "newcomers: 3 | newcomers", "newcomers: some | newcomers: {delay: 60ms",
        "newcomers: {delay: 3ms} | period", "newcomers: {delay: 0ms, period: 1s} | newcomers: none",
        "newcomers: {delay: 3s, period: 1s} | longer than the delay", "contexts: 0 | 1..1024", "samples: 0 | 1.."})
    void shouldRefuseWhatIsNoLimit(final String text, final String expected) {
        final String said = assertThrows(InvalidFileException.class, () -> file(", " + text)).getMessage();
        assertTrue(said.contains(expected), said);
    }

    @Test
    void shouldWriteWhatItReads() throws Exception {
        assertEquals("clock 1.53, no new contexts, 4 contexts",
            file(", clock: 1.53, newcomers: none, contexts: 4").platform().limits().text());
        assertEquals("a new context for 55ms every 2s",
            file(", newcomers: {delay: 55ms, period: 2s}").platform().limits().text());
        for (final String said : List.of("", ", clock: 1.53, newcomers: none", ", clock: 10",
            ", newcomers: {delay: 55ms, period: 2s}, contexts: 4, samples: 202")) {
            final TaskSet set = file(said);
            assertEquals(set, new TaskSetReader().readText(TaskSetWriter.json(set), "again"), said);
        }
        assertThrows(InvalidModelException.class, () -> new PlatformLimits(999, false, 0, 0, 0, 0));
    }

    /** A core whose threads may need more of a second than the kernel gives real-time threads. */
    @Test
    void shouldMakeTheBoundConditionalWhereTheKernelWouldThrottleACore() {
        final TaskSet full = Sets.stated(Sets.set(WaitMode.SUSPEND, 1, 0.1, Sets.task("a", 1, 2, 100, Sets.cpu(97))));
        final Soundness claim = claim(full);
        assertEquals(Soundness.Verdict.CONDITIONAL, claim.verdict());
        assertTrue(claim.text().contains("if T1: real-time threads of core 1 may need 973 ms of a second, and the "
            + "kernel gives them 950: kernel.sched_rt_runtime_us must be -1"), claim.text());
        final TaskSet light = Sets.stated(Sets.set(WaitMode.SUSPEND, 1, 0.1, Sets.task("a", 1, 2, 100, Sets.cpu(50))));
        assertEquals(Soundness.Verdict.SOUND, claim(light).verdict(), claim(light).text());
        assertEquals(Status.HOLDS, finding(light, Hypothesis.T1).status());
    }

    /** A thread that spins may need its core until its deadline. */
    @Test
    void shouldTakeThreadsThatSpinToNeedTheirCore() {
        final TaskSet set = Sets.stated(Sets.set(WaitMode.BUSY, 1, 0.1, Sets.task("a", 1, 2, 100, Sets.cpu(1),
            Sets.gpu(1, 96))));
        final Soundness claim = Soundness.of(Analyses.describe("gcaps-window-busy"), set);
        assertTrue(claim.text().contains("T1: real-time threads of core 1 may need 1000 ms"), claim.text());
    }

    /** SCHED_DEADLINE gives a thread that wakes a later deadline: what the kernel does is not what the model says. */
    @Test
    void shouldClaimNothingForCoresByDeadlineWhoseThreadsSleep() {
        final TaskSet set = Sets.stated(Sets.set(WaitMode.SUSPEND, 1, 1, Sets.task("A", 1, 2, 100, Sets.cpu(1),
            Sets.gpu(0, 60), Sets.cpu(20)), Sets.task("h", 1, 1, 80, Sets.cpu(15))));
        final Soundness claim = Soundness.of(Analyses.describe("edf-edf-suspend"), set);
        assertEquals(Soundness.Verdict.NOT_SOUND, claim.verdict());
        assertTrue(claim.text().contains("E2: the thread of task \"A\" sleeps within its jobs"), claim.text());
        assertEquals(Soundness.Verdict.SOUND, Soundness.of(Analyses.describe("edf-fp-suspend"), set).verdict());
    }
}
