/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.ipc.Abi;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What enforcers are told while best-effort work may run beside real-time segments. */
@Timeout(60)
class CoRunningTest {
    private static final long MS = 1_000_000;
    private static final int REAL_TIME = 1;
    private static final int FIT = 2;
    private static final int UNFIT = 3;
    private static final int HIGHER = 4;
    private static final int IDLE_REAL_TIME = 5;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final CoRunning coRunning =
        new CoRunning(10, DispatchRig.CONTEXTS, rig.desired, rig.scheduler, rig.tasks, rig.counters);
    private final TaskEntry task;
    private final TaskEntry higher;
    private long nowNs = MS;
    private long ticket;

    CoRunningTest() {
        rig.desired.coRunning(coRunning);
        task = rig.task(REAL_TIME, 50);
        rig.task(FIT, 0);
        rig.task(UNFIT, 0);
        higher = rig.task(HIGHER, 80);
        rig.task(IDLE_REAL_TIME, 10);
    }

    private void begin(final TaskEntry of) {
        coRunningBegin(of, ++ticket, true);
        rig.begin(of, ticket, false);
    }

    private void coRunningBegin(final TaskEntry of, final long ofTicket, final boolean optimistic) {
        rig.clock.set(nowNs);
        of.optimistic = optimistic;
        coRunning.begin(of, ofTicket, nowNs);
    }

    private void end(final TaskEntry of, final long tookNs) {
        nowNs += tookNs;
        rig.clock.set(nowNs);
        coRunning.end(of, of.ticket, nowNs);
        rig.end(of, of.ticket);
        nowNs += MS;
    }

    private boolean isOff(final int context) {
        return rig.enforcer.off().contains(context);
    }

    /** A job of the task; returns what was on beside it. */
    private List<Integer> job() {
        begin(task);
        final List<Integer> beside = List.of(FIT, UNFIT).stream().filter(c -> !isOff(c)).toList();
        assertTrue(isOff(IDLE_REAL_TIME), "only best effort may run beside a segment");
        end(task, beside.contains(UNFIT) ? 3 * MS : MS);
        assertEquals(List.of(), rig.enforcer.off(), "between segments everything is enabled");
        return beside;
    }

    /** Until one context has passed. */
    private void learn() {
        for (int i = 0; i < 400; i++) {
            job();
        }
        assertTrue(task.coRun.hasPassed(FIT));
    }

    @Test
    void shouldHoldAllUntilTheTimeAloneIsKnown() {
        assertEquals(List.of(), job());
        assertEquals(0, rig.count(Counter.CO_RUN_SEGMENTS));
    }

    @Test
    void shouldLeaveEnabledWhatFitsAndHoldWhatDoesNot() {
        learn();
        int fit = 0;
        int unfit = 0;
        for (int i = 0; i < 64; i++) {
            final List<Integer> beside = job();
            fit += beside.contains(FIT) ? 1 : 0;
            unfit += beside.contains(UNFIT) ? 1 : 0;
        }
        assertTrue(fit >= 48, fit + " of 64");
        assertTrue(unfit <= 1, unfit + " of 64");
        assertTrue(rig.count(Counter.CO_RUN_UNFIT) >= 1);
        assertTrue(rig.count(Counter.CO_RUN_SEGMENTS) > 64);
    }

    /** Begins a job beside which the fit context runs. */
    private void beginBeside() {
        learn();
        begin(task);
        while (isOff(FIT)) {
            end(task, MS);
            begin(task);
        }
    }

    @Test
    void shouldDisableWhatRanBesideWhenABetterSegmentPreempts() {
        beginBeside();
        begin(higher);
        assertTrue(isOff(FIT), "the better task has given no leave");
        assertFalse(isOff(HIGHER));
        final long alone = task.coRun.aloneNs();
        end(higher, 50 * MS);
        end(task, 50 * MS);
        assertEquals(alone, task.coRun.aloneNs());
        assertTrue(task.coRun.creditNs() >= 0, "a preempted job says nothing about what ran beside it");
        assertEquals(List.of(), rig.enforcer.off());
    }

    @Test
    void shouldDisableWhatRanBesideWhenALowerRealTimeSegmentFollows() {
        beginBeside();
        final TaskEntry lower = rig.tasks.get(IDLE_REAL_TIME);
        coRunningBegin(lower, ++ticket, false);
        rig.begin(lower, ticket, true);
        assertFalse(isOff(FIT), "a task that waits changes nothing");
        end(task, MS);
        assertTrue(isOff(FIT));
        end(lower, MS);
        assertEquals(List.of(), rig.enforcer.off());
    }

    @Test
    void shouldForgetWhatRanBesideWhenItsTaskIsClosed() {
        beginBeside();
        rig.tasks.remove(task);
        rig.scheduler.removeTask(task.id, nowNs);
        rig.decisions.settle();
        assertEquals(List.of(), rig.enforcer.off());
        begin(higher);
        assertTrue(isOff(FIT));
        end(higher, MS);
    }

    @Test
    void shouldTreatAProcessThatGetsTheNumberOfADeadOneAsNew() {
        learn();
        rig.desired.forget(0, FIT);
        assertFalse(task.coRun.hasPassed(FIT));
    }

    @Test
    void shouldHoldKernelsThatFillTheGpuForLongWithoutATrial() {
        coRunning.isLong(UNFIT, true);
        coRunning.isLong(UNFIT, true);
        assertEquals(1, rig.count(Counter.CO_RUN_UNFIT), "found once");
        for (int i = 0; i < 400; i++) {
            assertFalse(job().contains(UNFIT));
        }
        assertTrue(task.coRun.hasPassed(FIT));
        coRunning.isLong(UNFIT, false);
        boolean tried = false;
        for (int i = 0; i < 64; i++) {
            tried |= job().contains(UNFIT);
        }
        assertTrue(tried, "its kernels are shorter now");
    }

    @Test
    void shouldTryFirstWhatLeavesRoomOnTheGpu() {
        final int small = UNFIT;   // a higher number: without its class it comes second
        ((FakeSlot) rig.tasks.get(small).slot).kernelClass = Abi.KERNELS_SMALL;
        List<Integer> beside = List.of();
        for (int i = 0; i < 100 && beside.isEmpty(); i++) {
            begin(task);
            beside = List.of(FIT, small).stream().filter(c -> !isOff(c)).toList();
            end(task, MS);
        }
        assertEquals(List.of(small), beside);
    }

    @Test
    void shouldMeasureOnlyBeginsThatDidNotWait() {
        learn();
        final long alone = task.coRun.aloneNs();
        for (int i = 0; i < 40; i++) {
            coRunningBegin(task, ++ticket, false);
            rig.begin(task, ticket, true);
            assertTrue(isOff(FIT) && isOff(UNFIT));
            end(task, 9 * MS);
        }
        assertEquals(alone, task.coRun.aloneNs());
    }
}
