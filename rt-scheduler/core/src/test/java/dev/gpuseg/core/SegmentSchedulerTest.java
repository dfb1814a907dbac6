/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

/** Known answers: refusals first, then one scenario per rule. */
class SegmentSchedulerTest {
    private static final Policy FP = FixedPriority.INSTANCE;
    private static final Policy EDF = EarliestDeadlineFirst.INSTANCE;

    // ---- refusals --------------------------------------------------------------------------------------------------

    @Test
    void shouldRefuseConfigurationsOutOfRange() {
        assertThrows(NullPointerException.class,
            () -> new SchedulerConfig(null, 1, 1, 1, true, true, Unmanaged.ALLOW));
        assertThrows(NullPointerException.class, () -> new SchedulerConfig(FP, 1, 1, 1, true, true, null));
        assertThrows(IllegalArgumentException.class,
            () -> new SchedulerConfig(FP, 0, 1, 1, true, true, Unmanaged.ALLOW));
        assertThrows(IllegalArgumentException.class,
            () -> new SchedulerConfig(FP, 17, 1, 1, true, true, Unmanaged.ALLOW));
        assertThrows(IllegalArgumentException.class,
            () -> new SchedulerConfig(FP, 1, 0, 1, true, true, Unmanaged.ALLOW));
        assertThrows(IllegalArgumentException.class,
            () -> new SchedulerConfig(FP, 1, 1, 0, true, true, Unmanaged.ALLOW));
    }

    @Test
    void shouldRefuseTaskParametersThatContradictThemselves() {
        assertThrows(IllegalArgumentException.class, () -> new TaskParameters(1, 1, 100, 0, 0, 0, true));
        assertThrows(IllegalArgumentException.class, () -> new TaskParameters(1, 1, 1, -1, 0, 0, true));
        assertThrows(IllegalArgumentException.class, () -> new TaskParameters(1, 1, 0, 50, 0, 0, true));
        assertThrows(IllegalArgumentException.class, () -> new TaskParameters(1, 1, 1, 0, -1, 0, true));
        assertThrows(IllegalArgumentException.class, () -> new TaskParameters(1, 1, 1, 0, 0, -1, true));
        assertEquals(70, new TaskParameters(1, 1, 70, 0, 0, 0, true).gpuPriority());
    }

    @Test
    void shouldRefuseUnknownPolicyNamesAndNameTheKnownOnes() {
        final IllegalArgumentException e =
            assertThrows(IllegalArgumentException.class, () -> PolicyCatalog.builtIn().create("lottery"));
        assertEquals("policy \"lottery\" is unknown; use " + PolicyCatalog.builtIn().names(), e.getMessage());
        for (final String name : List.of("fp", "edf", "classes", "rr")) {
            assertEquals(name, PolicyCatalog.builtIn().create(name).name());
        }
    }

    @Test
    void shouldRefuseContextsAndTasksThatDoNotFit() {
        final Machine m = new Machine(FP, true).task(1, 10).context(2, ContextKind.UNMANAGED);
        final SegmentScheduler s = m.scheduler;
        assertThrows(IllegalArgumentException.class, () -> s.addContext(1, 0, ContextKind.MANAGED));
        assertThrows(IllegalArgumentException.class, () -> s.addContext(21, 0, ContextKind.MANAGED));
        assertThrows(IllegalArgumentException.class, () -> s.addContext(-1, 0, ContextKind.MANAGED));
        assertThrows(IllegalArgumentException.class, () -> s.addContext(5, 2, ContextKind.MANAGED));
        assertThrows(IllegalArgumentException.class, () -> m.task(1, 1, 10));
        assertThrows(IllegalArgumentException.class, () -> m.task(21, 1, 10));
        assertThrows(IllegalArgumentException.class, () -> m.task(3, 9, 10));
        assertThrows(IllegalArgumentException.class, () -> m.task(3, 2, 10));
        assertThrows(IllegalArgumentException.class, () -> s.setContextKind(1, ContextKind.UNMANAGED));
        assertThrows(IllegalArgumentException.class, () -> s.setContextKind(9, ContextKind.MANAGED));
        assertThrows(IllegalArgumentException.class, () -> s.setPriority(1, 0, 3, 0));
        assertThrows(IllegalArgumentException.class, () -> s.runningTask(2));
        assertFalse(s.isOpen(3));
        assertFalse(s.removeTask(3, 0));
        assertFalse(s.removeContext(9, 0));
        assertFalse(s.setPriority(3, 5, 0, 0));
        assertEquals(List.of(), m.recorder.calls);
    }

    @Test
    void shouldRefuseEventsThatDoNotFitTheirTask() {
        final Machine m = new Machine(FP, true).task(1, 10);
        final SegmentScheduler s = m.scheduler;
        assertEquals(Outcome.UNKNOWN_TASK, s.begin(7, 1, 0, 0, false, 0, 0));
        assertEquals(Outcome.UNKNOWN_TASK, s.begin(-1, 1, 0, 0, false, 0, 0));
        assertEquals(Outcome.UNKNOWN_TASK, s.begin(Integer.MAX_VALUE, 1, 0, 0, false, 0, 0));
        assertEquals(Outcome.UNKNOWN_TASK, s.end(7, 1, 0));
        assertEquals(Outcome.OLD_TICKET, s.begin(1, 0, 0, 0, false, 0, 0));
        assertEquals(Outcome.OLD_TICKET, s.begin(1, -5, 0, 0, false, 0, 0));
        assertEquals(Outcome.NOT_BEGUN, s.end(1, 1, 0));
        assertEquals(Outcome.NOT_BEGUN, s.end(1, 0, 0));
        assertEquals(Outcome.ACCEPTED, s.begin(1, 5, 0, 0, false, 0, 0));
        assertEquals(Outcome.ALREADY_BEGUN, s.begin(1, 5, 0, 0, false, 0, 0));
        assertEquals(Outcome.ALREADY_BEGUN, s.begin(1, 6, 0, 0, false, 0, 0));
        assertEquals(Outcome.OLD_TICKET, s.begin(1, 4, 0, 0, false, 0, 0));
        assertEquals(Outcome.OLD_TICKET, s.end(1, 4, 0));
        assertEquals(Outcome.NOT_BEGUN, s.cancel(1, 6, 0));
        assertEquals(Outcome.ACCEPTED, s.end(1, 5, 0));
        assertEquals(Outcome.OLD_TICKET, s.end(1, 5, 0));
        assertEquals(Outcome.OLD_TICKET, s.begin(1, 5, 0, 0, false, 0, 0));
        assertEquals("old-ticket", Outcome.name(Outcome.OLD_TICKET));
    }

    // ---- fixed priority --------------------------------------------------------------------------------------------

    @Test
    void shouldKeepLowerTaskOffTheGpuWhileHigherWindowIsOpen() {
        final Machine m = new Machine(FP, true).task(1, 10).task(2, 20);
        m.begin(1);
        m.recorder.take();
        m.begin(2);
        assertEquals(List.of(
            Call.desired(0, 1, false),
            new Call(Call.Kind.PREEMPT, 0, 1, 10, 2),
            Call.desired(0, 2, true),
            new Call(Call.Kind.GRANT, 0, 2, 20, 0)), m.recorder.take());
        assertEquals(2, m.scheduler.runningTask(0));
        m.end(2);
        assertEquals(List.of(
            Call.desired(0, 2, false),
            Call.desired(0, 1, true),
            new Call(Call.Kind.RESUME, 0, 1, 10, 0)), m.recorder.take());
    }

    @Test
    void shouldServeEqualsInOrderOfTheirBeginsThenOfTheirIds() {
        final Machine m = new Machine(FP, true).task(1, 10).task(2, 10).task(3, 10).task(9, 50);
        m.begin(9);
        final SegmentScheduler s = m.scheduler;
        s.begin(2, 1, 0, 0, false, 200, 300);
        s.begin(3, 1, 0, 0, false, 100, 300);
        s.begin(1, 1, 0, 0, false, 200, 300);
        s.end(9, s.ticket(9), 310);
        assertEquals(3, s.runningTask(0));
        s.end(3, 1, 320);
        assertEquals(1, s.runningTask(0));
        s.end(1, 1, 330);
        assertEquals(2, s.runningTask(0));
    }

    @Test
    void shouldCompareGpuPrioritiesWhereTheyDiffer() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED).task(2, 50);
        m.scheduler.addTask(new TaskParameters(1, 1, 10, 60, 0, 0, false));
        m.begin(2, 1);
        assertEquals("running preempted", m.states(1, 2));
    }

    @Test
    void shouldLeaveOtherGpusAlone() {
        final Machine m = new Machine(FP, true).task(1, 10);
        m.scheduler.addContext(5, 1, ContextKind.MANAGED);
        m.task(5, 5, 0).begin(5, 1);
        assertEquals("running running", m.states(1, 5));
        assertTrue(m.scheduler.contextDesired(5));
        assertEquals(1, m.scheduler.begunCount(1));
    }

    @Test
    void shouldNeverTakeAProtectedContextOff() {
        final Machine m = new Machine(FP, true).context(7, ContextKind.PROTECTED).task(1, 10);
        m.begin(1);
        assertTrue(m.scheduler.contextDesired(7));
        m.scheduler.setContextKind(7, ContextKind.MANAGED);
        assertFalse(m.scheduler.contextDesired(7));
        m.scheduler.setContextKind(7, ContextKind.PROTECTED);
        assertTrue(m.scheduler.contextDesired(7));
    }

    @Test
    void shouldLeaveUnmanagedContextsAloneIfTold() {
        final Recorder recorder = new Recorder();
        final SegmentScheduler s = new SegmentScheduler(
            new SchedulerConfig(FP, 1, 4, 4, true, false, Unmanaged.ALLOW), recorder);
        s.addContext(1, 0, ContextKind.MANAGED);
        s.addContext(2, 0, ContextKind.UNMANAGED);
        s.addTask(new TaskParameters(1, 1, 5, 0, 0, 0, false));
        s.begin(1, 1, 0, 0, false, 0, 0);
        assertTrue(s.contextDesired(2));
    }

    @Test
    void shouldRankABegunSegmentAnewWhenItsPriorityChanges() {
        final Machine m = new Machine(FP, true).task(1, 10).task(2, 20);
        m.begin(1, 2);
        assertTrue(m.scheduler.setPriority(1, 30, 0, 100));
        assertEquals("running preempted", m.states(1, 2));
        assertTrue(m.scheduler.setPriority(1, 0, 0, 110));
        assertEquals("preempted running", m.states(1, 2));
    }

    // ---- EDF, round robin, gate ------------------------------------------------------------------------------------

    @Test
    void shouldRunTheEarliestDeadlineAndPutNoDeadlineLast() {
        final Machine m = new Machine(EDF, true).task(1, 99).task(2, 1).task(3, 1).task(4, 0);
        m.begin(4).begin(1, 0, false).begin(2, 5000, false).begin(3, 4000, false);
        assertEquals("preempted preempted running preempted", m.states(1, 2, 3, 4));
        m.end(3);
        assertEquals("running", m.state(2));
        m.end(2);
        assertEquals("running", m.state(1));
        m.end(1);
        assertEquals("running", m.state(4));
    }

    @Test
    void shouldCountARelativeDeadlineFromTheReleaseIfThereIsOne() {
        final Machine m = new Machine(EDF, true).context(1, ContextKind.MANAGED);
        m.scheduler.addTask(new TaskParameters(1, 1, 5, 0, 1000, 0, false));
        m.scheduler.begin(1, 1, 400, 0, false, 500, 510);
        assertEquals(1400, m.scheduler.deadlineNs(1));
        m.scheduler.end(1, 1, 520);
        m.scheduler.begin(1, 2, 0, 0, false, 530, 540);
        assertEquals(1530, m.scheduler.deadlineNs(1));
        m.scheduler.end(1, 2, 550);
        m.scheduler.begin(1, 3, Long.MAX_VALUE - 10, 0, false, 560, 570);
        assertEquals(Long.MAX_VALUE, m.scheduler.deadlineNs(1), "a deadline that does not fit is none");
    }

    @Test
    void shouldOnlyObserveUnderRoundRobin() {
        final Machine m = new Machine(RoundRobin.INSTANCE, true).task(1, 10).task(2, 20).task(3, 0);
        m.begin(3, 2, 1);
        assertEquals("running running running", m.states(1, 2, 3));
        assertTrue(m.recorder.calls.stream().allMatch(c -> c.kind() == Call.Kind.GRANT));
        m.scheduler.setPolicy(FP, 100);
        assertEquals("preempted running preempted", m.states(1, 2, 3));
        assertFalse(m.scheduler.contextDesired(3));
        m.scheduler.setPolicy(RoundRobin.INSTANCE, 110);
        assertEquals("running running running", m.states(1, 2, 3));
        assertTrue(m.scheduler.contextDesired(3));
    }

    @Test
    void shouldDisplaceNothingAtTheGate() {
        final Machine m = new Machine(FP, false).task(1, 10).task(2, 20).task(3, 30).task(4, 0);
        m.begin(1, 2, 3, 4);
        assertEquals("running waiting waiting waiting", m.states(1, 2, 3, 4));
        m.end(1);
        assertEquals("waiting running waiting", m.states(2, 3, 4));
        m.end(3);
        assertEquals("running waiting", m.states(2, 4));
        m.end(2);
        assertEquals("running", m.state(4));
        assertTrue(m.recorder.calls.stream().allMatch(c -> c.kind() == Call.Kind.GRANT));
    }

    @Test
    void shouldLetARealTimeSegmentWaitForAllBestEffortOnesAtTheGate() {
        final Machine m = new Machine(EDF, false).task(1, 0).task(2, 0).task(3, 0).task(9, 30);
        m.begin(1, 2, 9, 3);
        assertEquals("running running waiting waiting", m.states(1, 2, 3, 9));
        m.end(1);
        assertEquals("running waiting waiting", m.states(2, 3, 9));
        m.end(2);
        assertEquals("waiting running", m.states(3, 9));
        m.end(9);
        assertEquals("running", m.state(3));
    }

    // ---- several tasks of one context ------------------------------------------------------------------------------

    @Test
    void shouldGrantOneRealTimeTaskOfAContextAtATime() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED).task(1, 1, 10).task(2, 1, 20);
        m.begin(1, 2);
        assertEquals("running waiting", m.states(1, 2));
        m.end(1);
        assertEquals("running", m.state(2));
    }

    @Test
    void shouldLetBestEffortTasksOfOneContextRunTogether() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED).task(1, 1, 0).task(2, 1, 0)
            .task(3, 1, 5);
        m.begin(1, 2, 3);
        assertEquals("running running waiting", m.states(1, 2, 3));
        m.end(1);
        assertEquals("running waiting", m.states(2, 3));
        m.end(2);
        assertEquals("running", m.state(3));
    }

    @Test
    void shouldTakeABeginThatDidNotWaitAsGrantedEvenBesideAnotherOfItsContext() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED).task(1, 1, 10).task(2, 1, 20);
        m.begin(1).begin(2, 0, true);
        assertEquals("preempted running", m.states(1, 2));
        m.end(2);
        assertEquals("running", m.state(1));
    }

    // ---- optimistic begin ------------------------------------------------------------------------------------------

    @Test
    void shouldGrantABeginThatDidNotWaitAndReportItPreemptedIfSomethingBetterIsThere() {
        final Machine m = new Machine(FP, true, true).task(1, 10).task(2, 20);
        m.begin(2);
        m.recorder.take();
        m.begin(1, 0, true);
        assertEquals(List.of(
            new Call(Call.Kind.GRANT, 0, 1, 20, 0),
            new Call(Call.Kind.PREEMPT, 0, 1, 20, 2)), m.recorder.take());
        assertFalse(m.scheduler.contextDesired(1), "it was off before the late record arrived");
    }

    @Test
    void shouldPregrantExactlyWhoOutranksEverythingBegunUnderFixedPriority() {
        final Machine m = new Machine(FP, true, true).task(1, 10).task(2, 20).task(3, 20).task(4, 30).task(5, 0);
        assertEquals("11111", pregrants(m, 1, 2, 3, 4, 5));
        m.begin(2);
        // Task 2 does not stand in its own way; an equal would have to queue behind it.
        assertEquals("01010", pregrants(m, 1, 2, 3, 4, 5));
        m.begin(3);
        assertEquals("00010", pregrants(m, 1, 2, 3, 4, 5));
        m.end(2, 3);
        assertEquals("11111", pregrants(m, 1, 2, 3, 4, 5));
    }

    @Test
    void shouldPregrantUnderEdfOnlyWhileNoOtherRealTimeSegmentIsBegun() {
        final Machine m = new Machine(EDF, true, true).task(1, 10).task(2, 20).task(5, 0);
        m.begin(5);
        assertEquals("111", pregrants(m, 1, 2, 5));
        m.begin(1);
        assertEquals("100", pregrants(m, 1, 2, 5));
    }

    @Test
    void shouldNotPregrantWhereTheHardwareCouldNotTakeTheTaskBack() {
        final Machine shared = new Machine(FP, true, true).task(1, 10);
        assertEquals("1", pregrants(shared, 1));
        shared.task(2, 1, 20);
        assertEquals("00", pregrants(shared, 1, 2));
        shared.scheduler.removeTask(1, 0);
        assertEquals("1", pregrants(shared, 2));
        shared.scheduler.setContextKind(1, ContextKind.PROTECTED);
        assertEquals("0", pregrants(shared, 2));
        assertEquals("0", pregrants(new Machine(FP, false, true).task(1, 10), 1));
        assertEquals("0", pregrants(new Machine(FP, true, false).task(1, 10), 1));
    }

    private static String pregrants(final Machine m, final int... tasks) {
        final StringBuilder text = new StringBuilder();
        for (final int t : tasks) {
            text.append(m.scheduler.isPregranted(t) ? '1' : '0');
        }
        return text.toString();
    }

    // ---- timers ----------------------------------------------------------------------------------------------------

    @Test
    void shouldReportAMissedDeadlineOnceAndNotAtTheDeadlineItself() {
        final Machine m = new Machine(FP, true).task(1, 10);
        final SegmentScheduler s = m.scheduler;
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
        s.begin(1, 1, 0, 500, false, 100, 100);
        m.recorder.take();
        assertEquals(501, s.nextTimerNs());
        s.onTimer(500);
        assertEquals(List.of(), m.recorder.take());
        s.onTimer(501);
        s.onTimer(900);
        assertEquals(List.of(new Call(Call.Kind.MISS, -1, 1, 1, 500)), m.recorder.take());
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
    }

    @Test
    void shouldReportAMissThatIsFoundOutByTheEndItself() {
        final Machine m = new Machine(FP, true).task(1, 10);
        m.scheduler.begin(1, 1, 0, 500, false, 100, 100);
        m.recorder.take();
        m.scheduler.end(1, 1, 700);
        assertEquals(new Call(Call.Kind.MISS, -1, 1, 1, 500), m.recorder.take().get(0));
    }

    @Test
    void shouldCountRunningTimeAgainstTheBudgetAndPreemptedTimeNot() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED).task(2, 20);
        final SegmentScheduler s = m.scheduler;
        s.addTask(new TaskParameters(1, 1, 10, 0, 0, 100, false));
        s.begin(1, 1, 0, 0, false, 1000, 1000);
        assertEquals(1101, s.nextTimerNs());
        s.begin(2, 1, 0, 0, false, 1060, 1060);
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
        s.end(2, 1, 5000);
        assertEquals(5041, s.nextTimerNs());
        m.recorder.take();
        s.onTimer(5040);
        assertEquals(List.of(), m.recorder.take());
        s.onTimer(5041);
        assertEquals(List.of(new Call(Call.Kind.OVERRUN, -1, 1, 1, 100)), m.recorder.take());
        s.begin(2, 2, 0, 0, false, 6000, 6000);
        s.end(2, 2, 7000);
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
        s.end(1, 1, 7010);
        s.begin(1, 2, 0, 0, false, 8000, 8000);
        assertEquals(8101, s.nextTimerNs(), "each segment has the whole budget");
    }

    @Test
    void shouldTakeATimeThatRunsBackwardsForTheLatestOne() {
        final Machine m = new Machine(FP, true).context(1, ContextKind.MANAGED);
        m.scheduler.addTask(new TaskParameters(1, 1, 10, 0, 0, 100, false));
        m.scheduler.onTimer(1000);
        m.scheduler.begin(1, 1, 0, 0, false, 10, 10);
        assertEquals(1101, m.scheduler.nextTimerNs());
    }

    @Test
    void shouldStartAfreshWhenAnIdIsUsedAgain() {
        final Machine m = new Machine(FP, true, true).task(1, 10).task(2, 20);
        m.begin(1, 2);
        m.scheduler.removeContext(1, m.now());
        m.scheduler.addContext(1, 1, ContextKind.MANAGED);
        m.task(1, 1, 30);
        assertEquals("idle", m.state(1));
        assertTrue(m.scheduler.contextDesired(1));
        assertTrue(m.scheduler.isPregranted(1));
        assertEquals(Outcome.ACCEPTED, m.scheduler.begin(1, 1, 0, 0, false, 0, m.now()));
        assertEquals(1, m.scheduler.runningTask(1));
        assertEquals(2, m.scheduler.runningTask(0));
    }

    @Test
    void shouldServeEveryTaskAtTheLargestSizes() {
        final int gpus = SchedulerConfig.GPUS_MAX;
        final int contexts = 1024;
        final int tasks = 16384;
        final int[] grants = new int[tasks + 1];
        final Recorder recorder = new Recorder() {
            @Override
            public void onGrant(final int gpu, final int taskId, final long ticket) {
                grants[taskId]++;
            }
        };
        final SegmentScheduler s = new SegmentScheduler(
            new SchedulerConfig(FP, gpus, tasks, contexts, true, true, Unmanaged.BEST_EFFORT), recorder);
        for (int c = 1; c <= contexts; c++) {
            s.addContext(c, c % gpus, ContextKind.MANAGED);
        }
        for (int t = 1; t <= tasks; t++) {
            s.addTask(new TaskParameters(t, 1 + t % contexts, t % 100, 0, 0, 0, true));
        }
        for (int t = 1; t <= tasks; t++) {
            assertEquals(Outcome.ACCEPTED, s.begin(t, 1, 0, 0, false, t, t));
        }
        for (int gpu = 0; gpu < gpus; gpu++) {
            for (int t = s.runningTask(gpu); t != SegmentScheduler.NONE; t = s.runningTask(gpu)) {
                assertEquals(Outcome.ACCEPTED, s.end(t, 1, tasks));
            }
        }
        for (int t = 1; t <= tasks; t++) {
            assertEquals(1, grants[t]);
        }
    }
}
