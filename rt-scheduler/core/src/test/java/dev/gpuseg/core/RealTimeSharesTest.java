/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

/** What the real-time segments of an account may use of a GPU. */
class RealTimeSharesTest {
    private static final long MS = 1_000_000;
    private static final long SECOND = 1_000 * MS;
    private static final int GREEDY = 1;
    private static final int OTHER = 2;
    private static final int ACCOUNT = 7;

    private final Told sink = new Told();
    private long ticket;

    /** Keeps which task has the GPU, as it was told, and when. */
    private static final class Told extends SilentSink {
        final List<String> shares = new ArrayList<>();
        final List<Integer> pregranted = new ArrayList<>();

        @Override
        public void onPregrant(final int taskId, final boolean isPregranted) {
            pregranted.remove((Integer) taskId);
            if (isPregranted) {
                pregranted.add(taskId);
            }
        }

        @Override
        public void onShare(final int taskId, final boolean spent) {
            shares.add(taskId + (spent ? " spent" : " whole"));
        }
    }

    private SegmentScheduler machine(final boolean preemptive) {
        final SegmentScheduler s = new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, 1, 31, 31,
            preemptive, true, Unmanaged.BEST_EFFORT), sink);
        for (int c = 0; c <= 9; c++) {
            s.addContext(c, 0, ContextKind.MANAGED);
        }
        return s;
    }

    private static TaskParameters task(final int id, final int context, final int priority, final int account) {
        return new TaskParameters(id, context, priority, 0, 0, 0, true).inAccount(account);
    }

    private long begin(final SegmentScheduler s, final int task, final long nowNs) {
        assertEquals(Outcome.ACCEPTED, s.begin(task, ++ticket, 0, 0, false, nowNs, nowNs));
        return ticket;
    }

    @Test
    void shouldRefuseAccountsAndSharesOutOfRange() {
        final SegmentScheduler s = machine(true);
        assertThrows(IllegalArgumentException.class, () -> s.setShare(0, 50, 0));
        assertThrows(IllegalArgumentException.class, () -> s.setShare(32, 50, 0));
        assertThrows(IllegalArgumentException.class, () -> s.setShare(1, 101, 0));
        assertThrows(IllegalArgumentException.class, () -> s.setShare(1, -1, 0));
        assertThrows(IllegalArgumentException.class, () -> s.addTask(task(1, 1, 10, 32)));
    }

    @Test
    void shouldDemoteAnAccountThatUsedUpItsShareForOneSecond() {
        final SegmentScheduler s = machine(true);
        s.setShare(ACCOUNT, 50, 0);
        s.addTask(task(GREEDY, 1, 40, ACCOUNT));
        s.addTask(task(OTHER, 2, 10, 0));
        begin(s, GREEDY, 0);
        begin(s, OTHER, 0);
        assertEquals(GREEDY, s.runningTask(0));
        s.onTimer(SECOND);   // half a second of credit, and half of that time was earned meanwhile
        assertEquals(GREEDY, s.runningTask(0));
        assertEquals(SECOND + 1, s.nextTimerNs());
        s.onTimer(SECOND + 1);
        assertEquals(OTHER, s.runningTask(0), "the lower task has the GPU although the higher one never ends");
        assertFalse(s.contextDesired(1));
        assertTrue(s.isSpent(GREEDY));
        assertEquals(List.of("1 spent"), sink.shares);
        s.onTimer(2 * SECOND + 1);
        assertEquals(OTHER, s.runningTask(0));
        s.onTimer(2 * SECOND + 2);
        assertEquals(GREEDY, s.runningTask(0));
        assertEquals(List.of("1 spent", "1 whole"), sink.shares);
    }

    @Test
    void shouldChargeManyTasksOfOneAccountTogether() {
        final SegmentScheduler s = machine(true);
        s.setShare(ACCOUNT, 50, 0);
        s.addTask(task(OTHER, 2, 10, 0));
        for (int t = 3; t < 9; t++) {
            s.addTask(task(t, t, 40, ACCOUNT));
        }
        begin(s, OTHER, 0);
        long otherNs = 0;
        long sinceNs = 0;
        long segment = begin(s, 3, 0);
        int t = 3;
        for (long now = 100 * MS; now <= 10 * SECOND; now += 100 * MS) {   // each segment is short
            otherNs += s.runningTask(0) == OTHER ? now - sinceNs : 0;
            sinceNs = now;
            s.end(t, segment, now);
            t = t == 8 ? 3 : t + 1;
            segment = begin(s, t, now);
        }
        assertTrue(otherNs > 4 * SECOND, otherNs + " ns of 10 s are left to the lower task");
    }

    @Test
    void shouldChargeAnAccountWhoseBestEffortTaskRunsInPlaceOfItsRealTimeTask() {
        final SegmentScheduler s = machine(true);
        s.setShare(ACCOUNT, 50, 0);
        s.addTask(task(3, 1, 0, 0));          // the same process: without an end, and without a budget
        s.addTask(task(4, 1, 40, ACCOUNT));
        s.addTask(task(OTHER, 2, 10, 0));
        begin(s, 3, 0);
        begin(s, 4, 0);                       // waits for its own process for ever, and lends it its rank
        begin(s, OTHER, 0);
        assertFalse(s.contextDesired(2));
        s.onTimer(SECOND + 1);
        assertEquals(OTHER, s.runningTask(0));
        assertTrue(s.contextDesired(2));
    }

    @Test
    void shouldNotPregrantATaskWhoseShareIsUsedUp() {
        final SegmentScheduler s = machine(true);
        s.setShare(ACCOUNT, 20, 0);
        s.addTask(task(GREEDY, 1, 40, ACCOUNT));
        s.addTask(task(3, 3, 45, ACCOUNT));
        assertTrue(sink.pregranted.containsAll(List.of(GREEDY, 3)));
        final long segment = begin(s, GREEDY, 0);
        s.onTimer(250 * MS + 1);
        assertTrue(s.isSpent(3));
        assertEquals(List.of(), sink.pregranted);
        s.addTask(task(5, 5, 45, ACCOUNT));
        assertTrue(s.isSpent(5), "closing and opening tasks is no way out");
        s.end(GREEDY, segment, SECOND + MS);
        assertEquals(List.of(), sink.pregranted);
        s.onTimer(3 * SECOND);
        assertEquals(3, sink.pregranted.size());
    }

    @Test
    void shouldNotEndWhatRunsBehindAGateButGrantOthersFirst() {
        final SegmentScheduler s = machine(false);
        s.setShare(ACCOUNT, 50, 0);
        s.addTask(task(GREEDY, 1, 40, ACCOUNT));
        s.addTask(task(3, 3, 41, ACCOUNT));
        s.addTask(task(OTHER, 2, 10, 0));
        final long first = begin(s, GREEDY, 0);
        begin(s, OTHER, MS);
        begin(s, 3, MS);
        s.onTimer(2 * SECOND);
        assertEquals(GREEDY, s.runningTask(0));
        s.end(GREEDY, first, 2 * SECOND);
        assertEquals(OTHER, s.runningTask(0));
    }

    @Test
    void shouldGiveBackTheRankWhenTheLimitIsTakenAway() {
        final SegmentScheduler s = machine(true);
        s.setShare(ACCOUNT, 10, 0);
        s.addTask(task(GREEDY, 1, 40, ACCOUNT));
        s.addTask(task(OTHER, 2, 10, 0));
        begin(s, GREEDY, 0);
        begin(s, OTHER, 0);
        s.onTimer(SECOND);
        assertEquals(OTHER, s.runningTask(0));
        s.setShare(ACCOUNT, 100, SECOND);
        assertEquals(GREEDY, s.runningTask(0));
        s.onTimer(100 * SECOND);
        assertEquals(GREEDY, s.runningTask(0));
    }

    // In any time d the account has the GPU for at most share * (d + 1 s), whatever its tasks do.
    @Property(tries = 300)
    void shouldBoundTheUseOfAnAccountInEveryWindow(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentScheduler s = machine(true);
        final int percent = random.nextInt(1, 100);
        s.setShare(ACCOUNT, percent, 0);
        final List<long[]> used = new ArrayList<>();   // from, to
        final long[] tickets = new long[10];
        s.addTask(task(9, 9, 1, 0));
        begin(s, 9, 0);
        long now = 0;
        for (int i = 0; i < 400; i++) {
            final long until = now + random.nextLong(random.nextBoolean() ? 2 * MS : 300 * MS);
            while (now < until) {   // timers in time
                final long next = Math.min(until, s.nextTimerNs());
                if (s.runningTask(0) != 9 && s.runningTask(0) >= 0 && s.isRealTime(s.runningTask(0)) && next > now) {
                    used.add(new long[] {now, next});
                }
                now = next;
                s.onTimer(now);
            }
            final int t = random.nextInt(8);
            if (!s.isOpen(t)) {
                s.addTask(task(t, t / 2, random.nextInt(4) == 0 ? 0 : random.nextInt(2, 50), ACCOUNT));
            } else if (random.nextInt(12) == 0) {
                s.removeTask(t, now);
            } else if (s.state(t) == SegmentState.IDLE) {
                tickets[t] = begin(s, t, now);
            } else {
                s.end(t, tickets[t], now);
            }
        }
        long sum = 0;
        int from = 0;
        for (int to = 0; to < used.size(); to++) {
            sum = 0;
            for (from = to; from >= 0; from--) {
                sum += used.get(from)[1] - used.get(from)[0];
                final long windowNs = used.get(to)[1] - used.get(from)[0];
                assertTrue(sum <= percent * (windowNs + SECOND) / 100 + 2, "seed " + seed + ": " + sum + " ns of "
                    + windowNs + " with a share of " + percent + "%");
            }
        }
    }

    // Tasks that do what they declare keep their rank: their uses sum to the share, their budgets to half a second's.
    @Property(tries = 300)
    void shouldNeverDemoteTasksThatKeepToWhatTheyDeclare(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final SegmentScheduler s = machine(true);
        final int tasks = random.nextInt(1, 6);
        final int percent = random.nextInt(5, 100);
        final long[] periodNs = new long[tasks];
        final long[] budgetNs = new long[tasks];
        final long[] releaseNs = new long[tasks];
        final long[] leftNs = new long[tasks];
        final long[] tickets = new long[tasks];
        s.setShare(ACCOUNT, percent, 0);
        for (int t = 0; t < tasks; t++) {
            periodNs[t] = random.nextLong(2 * MS, SECOND / 2 + 1);   // so budgets sum to half of the share at most
            budgetNs[t] = periodNs[t] * percent / 100 / tasks;
            releaseNs[t] = random.nextLong(periodNs[t]);
            s.addTask(task(t, t, 40 - t, ACCOUNT));
        }
        long now = 0;
        while (now < 20 * SECOND) {
            long next = Long.MAX_VALUE;
            final int running = s.runningTask(0);
            for (int t = 0; t < tasks; t++) {
                next = Math.min(next, releaseNs[t]);
            }
            next = running < 0 ? next : Math.min(next, now + leftNs[running]);
            if (running >= 0) {
                leftNs[running] -= next - now;
            }
            now = next;
            s.onTimer(now);
            if (running >= 0 && leftNs[running] == 0) {
                s.end(running, tickets[running], now);
            }
            for (int t = 0; t < tasks; t++) {
                if (releaseNs[t] == now) {
                    releaseNs[t] += periodNs[t];
                    if (s.state(t) == SegmentState.IDLE) {   // a job that is late counts as one that was left out
                        leftNs[t] = Math.max(1, budgetNs[t]);
                        tickets[t] = begin(s, t, now);
                    }
                }
            }
            for (int t = 0; t < tasks; t++) {
                assertFalse(s.isSpent(t), "seed " + seed + ", at " + now);
            }
        }
    }
}
