/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** Weights and caps of best-effort work, driven by the scheduler's own timers. */
class FairSharesTest {
    private static final long MS = 1_000_000;

    private final OnTime sink = new OnTime();
    private final SegmentScheduler s = new SegmentScheduler(
        new SchedulerConfig(FixedPriority.INSTANCE, 1, 31, 31, true, true, Unmanaged.BEST_EFFORT), sink);
    private long nowNs = 1;
    private long ticket;

    private void context(final int c) {
        s.addContext(c, 0, ContextKind.MANAGED);
        s.addTask(new TaskParameters(c, c, 0, 0, 0, 0, true));
    }

    private void begin(final int t) {
        assertEquals(Outcome.ACCEPTED, s.begin(t, ++ticket, 0, 0, false, nowNs, nowNs));
    }

    private void weigh(final int c, final int weight) {
        s.setWeight(s.ownGroup(c), weight, nowNs);
    }

    /** Lets time pass, handling every timer exactly when it is due. */
    private void run(final long forNs) {
        final long untilNs = nowNs + forNs;
        while (s.nextTimerNs() <= untilNs) {
            assertTrue(s.nextTimerNs() > nowNs || nowNs == untilNs, "timers lie ahead");
            nowNs = s.nextTimerNs();
            sink.until(nowNs);
            s.onTimer(nowNs);
        }
        nowNs = untilNs;
        sink.until(nowNs);
        s.onTimer(nowNs);
    }

    @Test
    void shouldRefuseWhatIsOutOfRange() {
        context(1);
        assertThrows(IllegalArgumentException.class, () -> s.setWeight(s.ownGroup(1), 0, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setWeight(s.ownGroup(1), 10_001, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setWeight(-1, 100, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setWeight(64, 100, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setCap(1, 2 * MS, MS, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setCap(1, -1, MS, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setCap(1, 1, MS - 1, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setGroup(1, 32, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setGroup(1, -2, 1));
        assertThrows(IllegalArgumentException.class, () -> s.setSharing(Sharing.TURNS, 1, 1));
        assertFalse(s.setGroup(9, 1, 1));
        assertEquals(-1, s.group(9));
        assertEquals(100, s.weight(s.ownGroup(1)));
        assertEquals(0, s.quotaNs(3));
    }

    @Test
    void shouldLetEverybodyRunWhileClaimsAreEqual() {
        for (int c = 1; c <= 3; c++) {
            context(c);
            begin(c);
        }
        run(100 * MS);
        assertEquals(3, sink.count(1, 4));
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
        for (int c = 1; c <= 3; c++) {
            weigh(c, 700);
        }
        run(100 * MS);
        assertEquals(3, sink.count(1, 4), "equal weights need no turns");
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
    }

    @Test
    void shouldShareByWeight() {
        for (int c = 1; c <= 3; c++) {
            context(c);
            weigh(c, 100 << (c - 1));
            begin(c);
        }
        sink.until(nowNs);
        sink.reset();
        run(7_000 * MS);
        assertEquals(1_000 * MS, sink.onNs[1], 10 * MS);
        assertEquals(2_000 * MS, sink.onNs[2], 10 * MS);
        assertEquals(4_000 * MS, sink.onNs[3], 10 * MS);
    }

    @Test
    void shouldShareBetweenGroupsNotContexts() {
        for (int c = 1; c <= 4; c++) {
            context(c);
            s.setGroup(c, c == 4 ? 2 : 1, nowNs);   // three processes against one
            begin(c);
        }
        sink.until(nowNs);
        sink.reset();
        run(4_000 * MS);
        assertEquals(2_000 * MS, sink.onNs[4], 10 * MS);
        assertEquals(2_000 * MS, sink.onNs[1], 10 * MS, "the three share one turn");
        assertEquals(sink.onNs[1], sink.onNs[3]);
        s.setGroup(4, SegmentScheduler.NONE, nowNs);
        assertEquals(s.ownGroup(4), s.group(4));
    }

    @Test
    void shouldNotCountTimeThatRealTimeTook() {
        context(1);
        context(2);
        weigh(2, 300);
        s.addContext(9, 0, ContextKind.MANAGED);
        s.addTask(new TaskParameters(9, 9, 50, 0, 0, 0, false));
        begin(1);
        begin(2);
        sink.until(nowNs);
        sink.reset();
        for (int i = 0; i < 1000; i++) {
            run(3 * MS);
            begin(9);
            assertEquals(0, sink.count(1, 3), "real time first");
            assertEquals(SegmentState.RUNNING, s.state(9));
            run(MS);
            s.end(9, ticket, nowNs);
            assertEquals(1, sink.count(1, 3));
        }
        assertEquals(3_000 * MS, sink.onNs[1] + sink.onNs[2]);
        assertEquals(750 * MS, sink.onNs[1], 10 * MS);
    }

    @Test
    void shouldCapAGroup() {
        context(1);
        s.setCap(s.ownGroup(1), 25 * MS, 100 * MS, nowNs);
        begin(1);
        sink.until(nowNs);
        sink.reset();
        run(25 * MS);
        assertEquals("preempted", SegmentState.name(s.state(1)));
        run(975 * MS);
        assertEquals(250 * MS, sink.onNs[1]);
        context(2);
        begin(2);
        sink.until(nowNs);
        sink.reset();
        run(1_000 * MS);
        assertEquals(250 * MS, sink.onNs[1], MS);
        assertEquals(750 * MS, sink.onNs[2], MS);
        s.setCap(s.ownGroup(1), 0, 0, nowNs);
        run(100 * MS);
        assertEquals(2, sink.count(1, 3));
    }

    @Test
    void shouldPayBackWhatALateTimerGaveAway() {
        context(1);
        s.setCap(s.ownGroup(1), 20 * MS, 100 * MS, nowNs);
        begin(1);
        sink.until(nowNs);
        sink.reset();
        for (int i = 0; i < 400; i++) {
            nowNs += 7 * MS;   // the timer is late: every 7 ms only
            sink.until(nowNs);
            s.onTimer(nowNs);
        }
        assertEquals(560 * MS, sink.onNs[1], 14 * MS);
    }

    @Test
    void shouldKeepTheShareOfSomeoneWhoEndsAndBeginsAtOnce() {
        context(1);
        context(2);
        weigh(1, 400);
        begin(1);
        begin(2);
        sink.until(nowNs);
        sink.reset();
        for (int i = 0; i < 2000; i++) {
            while (s.state(1) != SegmentState.RUNNING) {
                run(MS / 10);
            }
            run(4 * MS);
            if (s.state(1) == SegmentState.RUNNING) {
                s.end(1, s.ticket(1), nowNs);
                run(MS / 20);
                begin(1);
            }
        }
        final double share = (double) sink.onNs[1] / (sink.onNs[1] + sink.onNs[2]);
        assertEquals(0.8, share, 0.02);
    }

    @Test
    void shouldCountTimeOnTheHardwareWhenOperationsTakeLong() {
        for (int c = 1; c <= 3; c++) {
            context(c);
            weigh(c, 100 << (c - 1));
            begin(c);
        }
        final long[] onNs = new long[4];
        final boolean[] hardware = {true, true, true, true};
        final boolean[] wanted = {true, true, true, true};
        final long[] dueNs = new long[4];
        for (int i = 0; i < 70_000; i++) {   // 7 s in steps of 0.1 ms; off takes 1 ms, on another 1.5 ms
            nowNs += MS / 10;
            for (int c = 1; c <= 3; c++) {
                onNs[c] += hardware[c] ? MS / 10 : 0;
                if (wanted[c] != sink.on[c]) {
                    wanted[c] = sink.on[c];
                    dueNs[c] = nowNs + (wanted[c] ? 25 * MS / 10 : MS);
                }
                if (hardware[c] != wanted[c] && nowNs >= dueNs[c]) {
                    hardware[c] = wanted[c];
                    s.onApplied(c, wanted[c], nowNs, nowNs);
                }
            }
            s.onTimer(nowNs);
        }
        final double sum = onNs[1] + onNs[2] + onNs[3];
        for (int c = 1; c <= 3; c++) {
            assertEquals(1, onNs[c] / sum * 7 / (1 << c - 1), 0.02, "context " + c);
        }
    }

    @Test
    void shouldNotSaveUpTimeByStayingAway() {
        context(1);
        context(2);
        weigh(1, 200);
        begin(2);
        run(10_000 * MS);
        begin(1);
        sink.until(nowNs);
        sink.reset();
        run(300 * MS);
        assertEquals(200 * MS, sink.onNs[1], 20 * MS);
    }

    @Test
    void shouldCountProcessesThatNeverRegistered() {
        context(1);
        weigh(1, 300);
        s.addContext(2, 0, ContextKind.UNMANAGED);
        begin(1);
        sink.until(nowNs);
        sink.reset();
        run(4_000 * MS);
        assertEquals(3_000 * MS, sink.onNs[1], 10 * MS);
        assertEquals(1_000 * MS, sink.onNs[2], 10 * MS);
    }

    @Test
    void shouldNotMakeAnIdleProcessWait() {
        context(1);
        context(2);
        context(3);
        weigh(1, 300);
        begin(1);
        begin(2);
        run(50 * MS);
        assertTrue(sink.on[3], "a registered process without a segment competes for nothing");
        s.end(2, s.ticket(2), nowNs);
        run(50 * MS);
        assertTrue(sink.on[1] && sink.on[2] && sink.on[3]);
    }

    @Test
    void shouldNotPregrantBestEffortWhileSharesAreInUse() {
        context(1);
        assertTrue(s.isPregranted(1));
        weigh(1, 300);
        assertFalse(s.isPregranted(1));
        weigh(1, 100);
        assertTrue(s.isPregranted(1));
    }

    @Test
    void shouldExpressWeightsAsTimeslices() {
        for (int c = 1; c <= 3; c++) {
            context(c);
            begin(c);
        }
        s.setSharing(Sharing.TIMESLICES, 2 * MS, nowNs);
        assertEquals(0, sink.timesliceNs[1], "nothing to say while weights are as usual");
        weigh(1, 50);
        weigh(3, 300);
        assertEquals(MS, sink.timesliceNs[1]);
        assertEquals(2 * MS, sink.timesliceNs[2]);
        assertEquals(6 * MS, sink.timesliceNs[3]);
        assertEquals(3, sink.count(1, 4), "no turns");
        s.setGroup(1, 5, nowNs);
        s.setGroup(2, 5, nowNs);
        assertEquals(MS, sink.timesliceNs[1], "two processes of a group of weight 100");
        s.setSharing(Sharing.TURNS, 10 * MS, nowNs);
        assertEquals(0, sink.timesliceNs[3]);
        run(MS);
        assertTrue(sink.count(1, 4) < 3, "one group has the turn");
    }

    @Test
    void shouldForgetASettingWithItsProcess() {
        context(1);
        weigh(1, 300);
        s.removeContext(1, nowNs);
        context(1);
        assertEquals(100, s.weight(s.ownGroup(1)));
        assertTrue(s.isPregranted(1));
    }

    @Test
    void shouldTakeNoTurnsUnderAPolicyThatOnlyObserves() {
        context(1);
        context(2);
        weigh(1, 300);
        begin(1);
        begin(2);
        s.setPolicy(RoundRobin.INSTANCE, nowNs);
        assertEquals(2, sink.count(1, 3));
        assertEquals(Long.MAX_VALUE, s.nextTimerNs());
    }
}
