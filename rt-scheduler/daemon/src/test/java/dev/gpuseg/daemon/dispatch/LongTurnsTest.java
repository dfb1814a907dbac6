/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which best-effort programs are enabled, of those with kernels that fill the GPU for long, and of the others. */
@Timeout(60)
class LongTurnsTest {
    private static final long MS = 1_000_000;
    private static final int A = 1;
    private static final int B = 2;
    private static final int C = 3;
    private static final int SHORT = 4;
    private static final int REAL_TIME = 5;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private LongTurns turns;
    private long nowNs = MS;
    private long ticket;

    LongTurnsTest() {
        machine(new Capabilities(Capabilities.GATE, 0, 0, 0, 0, 64, false, "process", true));
    }

    private void machine(final Capabilities can) {
        rig.enforcer.mechanism.capabilities = can;
        rig.anticipation.started();
        turns = new LongTurns(rig.desired, rig.scheduler, rig.tasks, rig.anticipation, rig.counters,
            DispatchRig.CONTEXTS);
        for (int id = A; id <= SHORT; id++) {
            if (rig.tasks.get(id) == null) {
                begin(rig.task(id, 0));
            }
        }
        if (rig.tasks.get(REAL_TIME) == null) {
            rig.task(REAL_TIME, 50);
        }
        slot(SHORT).kernelClass = Abi.KERNELS_FILL;
    }

    private FakeSlot slot(final int id) {
        return (FakeSlot) rig.tasks.get(id).slot;
    }

    private void areLong(final int... ids) {
        for (final int id : ids) {
            slot(id).kernelClass = Abi.KERNELS_LONG;
            slot(id).inFlight = true;
        }
    }

    private void begin(final TaskEntry task) {
        rig.clock.set(nowNs);
        rig.begin(task, ++ticket, false);
    }

    private void end(final int id) {
        final TaskEntry task = rig.tasks.get(id);
        slot(id).inFlight = false;
        rig.end(task, task.ticket);
    }

    private void poll() {
        rig.clock.set(nowNs);
        if (turns.poll(nowNs)) {
            rig.decisions.settle();
        }
    }

    private void pass(final long ns) {
        for (final long untilNs = nowNs + ns; nowNs < untilNs; nowNs += MS / 10) {
            poll();
        }
    }

    /** Of those that there are. */
    private List<Integer> on() {
        final List<Integer> off = rig.enforcer.off();
        return List.of(A, B, C, SHORT).stream().filter(c -> rig.tasks.get(c) != null && !off.contains(c)).toList();
    }

    /** Has launches done at once when they are held. */
    private List<Integer> order(final int count) {
        final List<Integer> order = new ArrayList<>();
        while (order.size() < count) {
            for (int id = A; id <= C; id++) {
                slot(id).inFlight = on().contains(id);
            }
            pass(MS / 10);
            final List<Integer> longs = on().stream().filter(c -> c != SHORT).toList();
            assertTrue(longs.size() <= 1, "at a time: " + longs);
            if (longs.size() == 1 && (order.isEmpty() || !order.get(order.size() - 1).equals(longs.get(0)))) {
                order.add(longs.get(0));
            }
        }
        return order;
    }

    // ---- who does not take turns -----------------------------------------------------------------------------------

    @Test
    void shouldLeaveProgramsWithShortKernelsTogether() {
        pass(100 * MS);
        assertEquals(List.of(A, B, C, SHORT), on());
        assertEquals(0, rig.count(Counter.LONG_TURNS));
    }

    @Test
    void shouldLeaveASingleProgramWithLongKernelsAlone() {
        areLong(A);
        pass(100 * MS);
        assertEquals(List.of(A, B, C, SHORT), on());
        assertEquals(1, rig.count(Counter.LONG_KERNELS));
        assertEquals(0, rig.count(Counter.LONG_TURNS));
    }

    @Test
    void shouldNotConcernMechanismsThatStopRunningWork() {
        machine(new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, 64, false, "process", true));
        areLong(A, B, C);
        pass(100 * MS);
        assertEquals(List.of(A, B, C, SHORT), on());
    }

    @Test
    void shouldLeaveTurnsToTheSchedulerWhereWeightsDiffer() {
        areLong(A, B, C);
        pass(50 * MS);
        assertTrue(rig.count(Counter.LONG_TURNS) > 0);
        rig.scheduler.setWeight(rig.scheduler.group(B), 300, nowNs);
        rig.decisions.settle();
        final long before = rig.count(Counter.LONG_TURNS);
        pass(50 * MS);
        assertEquals(before, rig.count(Counter.LONG_TURNS));
    }

    @Test
    void shouldNotHoldRealTimeWorkForItsKernels() {
        areLong(A, REAL_TIME);
        begin(rig.tasks.get(REAL_TIME));
        pass(50 * MS);
        assertFalse(rig.enforcer.off().contains(REAL_TIME));
        assertEquals(0, rig.count(Counter.LONG_TURNS));
    }

    // ---- turns -----------------------------------------------------------------------------------------------------

    @Test
    void shouldLetProgramsOfEqualWeightTakeTurnsWhileOthersGoOn() {
        areLong(A, B, C);
        pass(15 * MS);
        assertEquals(List.of(A, B, C, A, B, C, A), order(7));
        assertTrue(on().contains(SHORT));
    }

    @Test
    void shouldGiveEachTurnTheSameTime() {
        areLong(A, B, C);
        pass(15 * MS);
        order(2);   // B's turn has just begun
        final long beganNs = nowNs;
        order(2);   // C's
        assertEquals(LongTurns.SLICE_MS, (nowNs - beganNs) / MS, 1);
    }

    @Test
    void shouldEnableTheNextOnlyWhenTheWorkInFlightIsDone() {
        areLong(A, B, C);
        pass(LongTurns.SLICE_MS * MS + 15 * MS);
        assertEquals(List.of(SHORT), on(), "A's last kernel is in flight");
        assertEquals(nowNs, turns.nextNs(nowNs), "look again at once");
        slot(A).inFlight = false;
        poll();
        assertEquals(List.of(B, SHORT), on());
    }

    @Test
    void shouldNotWaitForEverForAProgramThatNeverSaysThatItIsDone() {
        areLong(A, B, C);
        pass((LongTurns.SLICE_MS + LongTurns.SWITCH_MAX_MS + 15) * MS);
        assertEquals(List.of(B, SHORT), on());
    }

    @Test
    void shouldWaitOnlyOnceForAProgramThatIsNeverDone() {
        areLong(A, B);
        pass((LongTurns.SLICE_MS + LongTurns.SWITCH_MAX_MS + 15) * MS);
        assertEquals(List.of(B, C, SHORT), on());
        slot(B).inFlight = false;
        pass(LongTurns.SLICE_MS * MS);
        assertEquals(List.of(A, C, SHORT), on());
        pass(LongTurns.SLICE_MS * MS);
        assertEquals(List.of(B, C, SHORT), on(), "at the cost of one turn, not of another wait");
    }

    @Test
    void shouldPassTheTurnOnWhenTheSegmentEnds() {
        areLong(A, B, C);
        pass(15 * MS);
        assertEquals(List.of(A, SHORT), on());
        end(A);
        poll();
        assertEquals(List.of(B, SHORT), on(), "an idle program does not keep the GPU");
        begin(rig.tasks.get(A));
        assertEquals(List.of(B, SHORT), on(), "it waits for its turn");
    }

    @Test
    void shouldEndTurnsWhenFewerThanTwoCompete() {
        areLong(A, B);
        pass(15 * MS);
        assertEquals(List.of(A, C, SHORT), on());
        end(A);
        poll();
        assertEquals(List.of(A, B, C, SHORT), on());
        assertEquals(Long.MAX_VALUE, turns.nextNs(nowNs));
    }

    @Test
    void shouldLetNoTurnPassWhileARealTimeSegmentRuns() {
        areLong(A, B, C);
        pass(15 * MS);
        begin(rig.tasks.get(REAL_TIME));
        assertEquals(List.of(), on());
        pass(10 * LongTurns.SLICE_MS * MS);
        end(REAL_TIME);
        assertEquals(List.of(A, SHORT), on(), "it has most of its turn left");
    }

    @Test
    void shouldKeepProgramsOffWhoseTurnItIsNotWhenARealTimeSegmentEnds() {
        areLong(A, B, C);
        pass(15 * MS);
        for (int i = 0; i < 5; i++) {
            begin(rig.tasks.get(REAL_TIME));
            assertEquals(List.of(), on());
            end(REAL_TIME);
            assertEquals(List.of(A, SHORT), on());
        }
    }

    @Test
    void shouldKeepTheGpuFreeForAnExpectedBeginWhicheverTurnItIs() {
        areLong(A, B, C);
        pass(15 * MS);
        rig.anticipation.announce(rig.tasks.get(REAL_TIME), nowNs + 100_000);   // within the lead
        rig.anticipation.poll(nowNs);
        rig.decisions.settle();
        assertEquals(List.of(), on());
        pass(LongTurns.SLICE_MS * MS / 2);
        rig.anticipation.poll(nowNs);   // it did not come
        rig.decisions.settle();
        assertEquals(List.of(A, SHORT), on());
    }

    @Test
    void shouldForgetKernelsThatAreShorterNowAfterAWhile() {
        areLong(A, B, C);
        pass(15 * MS);
        for (int id = A; id <= C; id++) {
            slot(id).kernelClass = Abi.KERNELS_FILL;
            slot(id).inFlight = false;
        }
        pass(LongTurns.STAY_S * 1000 * MS / 2);
        assertEquals(2, on().size(), "by turns, each of its kernels takes less time than side by side");
        pass(LongTurns.STAY_S * 1000 * MS);
        assertEquals(List.of(A, B, C, SHORT), on());
    }

    @Test
    void shouldForgetAProcessThatIsGone() {
        areLong(A, B);
        pass(15 * MS);
        assertEquals(List.of(A, C, SHORT), on());
        rig.scheduler.removeTask(B, nowNs);
        rig.tasks.remove(rig.tasks.get(B));
        rig.desired.forget(0, B);
        rig.decisions.settle();
        poll();
        assertEquals(List.of(A, C, SHORT), on());
        assertFalse(rig.enforcer.off().contains(B), "the next one that gets its number is enabled");
        assertEquals(Long.MAX_VALUE, turns.nextNs(nowNs));
    }
}
