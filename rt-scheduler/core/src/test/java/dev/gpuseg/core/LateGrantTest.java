/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

/** Time in which a segment runs by decision only, because its grant or its context comes late. */
class LateGrantTest {
    private static final long MS = 1_000_000;
    private static final long SECOND = 1_000 * MS;
    private static final long BUDGET_NS = 5 * MS;
    private static final long GRACE_NS = 100 * MS;
    private static final int HONEST = 1;
    private static final int OTHER = 2;
    private static final int HIGH = 3;
    private static final int ACCOUNT = 7;

    private final List<String> told = new ArrayList<>();
    private final DecisionSink sink = new SilentSink() {
        @Override
        public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
            told.add(taskId + " overran " + budgetNs / MS);
        }

        @Override
        public void onShare(final int taskId, final boolean spent) {
            told.add(taskId + (spent ? " spent" : " whole"));
        }
    };
    private SegmentScheduler s = machine();
    private long ticket;

    private SegmentScheduler machine() {
        final SegmentScheduler made = new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, 1, 31, 31, true,
            true, Unmanaged.BEST_EFFORT), sink);
        made.countFromGrants();
        for (int c = 0; c <= 9; c++) {
            made.addContext(c, 0, ContextKind.MANAGED);
        }
        return made;
    }

    /** A task in the context of its number. */
    private void task(final int id, final int priority, final long budgetNs, final long windowNs, final int account) {
        s.addTask(new TaskParameters(id, id, priority, 0, 0, budgetNs, true, OverrunAction.DEMOTE, windowNs, 0)
            .inAccount(account));
    }

    private long begin(final int task, final boolean optimistic, final long nowNs) {
        assertEquals(Outcome.ACCEPTED, s.begin(task, ++ticket, 0, 0, optimistic, nowNs, nowNs));
        return ticket;
    }

    @Test
    void shouldNotChargeASegmentForTheTimeBeforeItsGrantIsGiven() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        task(OTHER, 10, 0, 0, 0);
        final long segment = begin(HONEST, false, 0);
        s.onGiven(OTHER, begin(OTHER, false, 0), 0);
        s.onTimer(20 * MS);   // the dispatcher stood still; this is what it looks at first
        s.onGiven(HONEST, segment, 20 * MS);
        assertTrue(s.isRealTime(HONEST), "it has not had the GPU");
        s.onTimer(20 * MS + BUDGET_NS);
        assertEquals(List.of(), told);
        s.onTimer(20 * MS + BUDGET_NS + 1);
        assertEquals(List.of("1 overran 5"), told);
        assertEquals(OTHER, s.runningTask(0));
    }

    @Test
    void shouldBeginTheWindowWithTheGrant() {
        task(HONEST, 40, 0, BUDGET_NS, 0);
        task(HIGH, 50, 0, 0, 0);
        final long segment = begin(HONEST, false, 0);
        final long high = begin(HIGH, false, 0);
        s.onGiven(HIGH, high, 0);
        s.onTimer(30 * MS);
        assertEquals(List.of(), told, "it is preempted before it was granted");
        s.end(HIGH, high, 30 * MS);
        s.onGiven(HONEST, segment, 40 * MS);
        assertEquals(40 * MS + BUDGET_NS + 1, s.nextTimerNs());
    }

    @Test
    void shouldNotChargeAResumedSegmentUntilItsContextIsEnabled() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        task(HIGH, 50, 0, 0, 0);
        s.onGiven(HONEST, begin(HONEST, false, 0), 0);
        final long high = begin(HIGH, false, MS);
        s.onApplied(HONEST, false, 2 * MS, 2 * MS);
        s.onGiven(HIGH, high, 2 * MS);
        s.end(HIGH, high, 3 * MS);
        assertEquals(3 * MS + GRACE_NS + 4 * MS + 1, s.nextTimerNs(), "if nothing is heard of it");
        s.onTimer(23 * MS);
        s.onApplied(HONEST, true, 13 * MS, 23 * MS);
        assertEquals(13 * MS + 4 * MS + 1, s.nextTimerNs(), "from when it was enabled, not from when that was noticed");
    }

    @Test
    void shouldNotChargeADisableThatWasUnderWayWhenTheSegmentWasResumed() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        task(HIGH, 50, 0, 0, 0);
        s.onGiven(HONEST, begin(HONEST, false, 0), 0);
        final long high = begin(HIGH, false, MS);
        s.end(HIGH, high, 2 * MS);
        s.onApplied(HONEST, false, 3 * MS, 3 * MS);
        s.onApplied(HONEST, true, 9 * MS, 9 * MS);
        assertEquals(9 * MS + 3 * MS + 1, s.nextTimerNs(), "one before it was preempted, one after it was resumed");
    }

    @Test
    void shouldChargeABeginThatDidNotWaitFromTheDecisionOn() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        s.onGiven(HONEST, begin(HONEST, true, 0), 0);
        assertEquals(BUDGET_NS + 1, s.nextTimerNs());
    }

    @Test
    void shouldGiveNoEndlessBudgetToASegmentWhoseGrantNeverComes() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        task(OTHER, 10, 0, 0, 0);
        task(HIGH, 50, 0, 0, 0);
        begin(HONEST, false, 0);
        begin(OTHER, false, 0);
        long now = 0;
        for (int i = 0; i < 30; i++) {   // preempted and resumed without an end, its wait begins anew each time
            now += 4 * MS;
            s.onTimer(now);
            final long high = begin(HIGH, false, now);
            s.end(HIGH, high, now);
        }
        assertEquals(List.of("1 overran 5"), told);
        assertEquals(OTHER, s.runningTask(0));
        assertFalse(s.isRealTime(HONEST));
    }

    @Test
    void shouldCountFromTheDecisionWhereNobodySaysWhenGrantsAreGiven() {
        s = new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, 1, 31, 31, true, true,
            Unmanaged.BEST_EFFORT), sink);
        s.addContext(HONEST, 0, ContextKind.MANAGED);
        task(HONEST, 40, BUDGET_NS, 0, 0);
        final long segment = begin(HONEST, false, 0);
        s.onGiven(HONEST, segment, 3 * MS);
        s.onSwitched(HONEST, false, 3 * MS);
        assertEquals(BUDGET_NS + 1, s.nextTimerNs());
    }

    @Test
    void shouldIgnoreAGrantOfASegmentThatEnded() {
        task(HONEST, 40, BUDGET_NS, 0, 0);
        final long segment = begin(HONEST, false, 0);
        s.end(HONEST, segment, MS);
        begin(HONEST, false, MS);
        s.onGiven(HONEST, segment, 2 * MS);
        s.onGiven(30, 1, 2 * MS);
        assertEquals(MS + GRACE_NS + BUDGET_NS + 1, s.nextTimerNs());
    }

    // ---- shares ----------------------------------------------------------------------------------------------------

    @Test
    void shouldNotChargeAShareForALateGrant() {
        s.setShare(ACCOUNT, 1, 0);   // a hundredth of a second
        task(HONEST, 40, 0, 0, ACCOUNT);
        final long segment = begin(HONEST, false, 0);
        s.onTimer(50 * MS);
        s.onGiven(HONEST, segment, 50 * MS);
        assertEquals(List.of(), told);
        s.onTimer(58 * MS);
        assertEquals(List.of(), told, "2 ms of the wait and 8 ms since");
        s.onTimer(59 * MS);
        assertEquals(List.of("1 spent"), told);
    }

    @Test
    void shouldChargeTheOtherSegmentsOfAnAccountThatWaitsWithOne() {
        s = new SegmentScheduler(new SchedulerConfig(RoundRobin.INSTANCE, 1, 31, 31, true, true,
            Unmanaged.BEST_EFFORT), sink);
        s.countFromGrants();
        s.addContext(1, 0, ContextKind.MANAGED);
        s.addContext(2, 0, ContextKind.MANAGED);
        s.setPolicy(new HighestClassFirst(50), 0);
        s.setShare(ACCOUNT, 1, 0);
        task(1, 40, 0, 0, ACCOUNT);
        task(2, 41, 0, 0, ACCOUNT);
        s.onGiven(1, begin(1, false, 0), 0);
        begin(2, false, 0);
        s.onTimer(11 * MS);
        assertEquals(List.of("1 spent", "2 spent"), told);
    }

    @Test
    void shouldChargeAMemberWhoBeginsAgainAndAgainBeforeHisGrantIsGiven() {
        s.setShare(ACCOUNT, 50, 0);
        task(HONEST, 40, BUDGET_NS, 0, ACCOUNT);
        task(OTHER, 10, 0, 0, 0);
        begin(OTHER, false, 0);
        long otherNs = 0;
        long sinceNs = 0;
        for (long now = 0; now < 20 * SECOND; now += 10 * MS) {   // much longer than a wait is charged
            final long segment = begin(HONEST, false, now);
            s.end(HONEST, segment, now + 10 * MS);
            otherNs += s.isSpent(HONEST) ? 10 * MS : 0;
            sinceNs = now;
        }
        assertTrue(otherNs > 9 * SECOND, otherNs / MS + " ms of " + sinceNs / MS + " ms are left to the lower task");
    }

    // What an account runs by decision is bounded by its share and its allowance, and what it has by its share alone.
    @Property(tries = 300)
    void shouldBoundWhatAnAccountRunsByDecisionAndWhatItHas(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        s = machine();
        ticket = 0;
        final int percent = random.nextInt(1, 100);
        final boolean slow = random.nextBoolean();
        s.setShare(ACCOUNT, percent, 0);
        task(9, 1, 0, 0, 0);
        begin(9, false, 0);
        task(HONEST, 40, 0, 0, ACCOUNT);
        task(HIGH, 50, 0, 0, ACCOUNT);
        final List<long[]> ran = new ArrayList<>();   // from, to, had
        long now = 0;
        for (int i = 0; i < 300; i++) {
            now = until(now + random.nextLong(20 * MS), now, ran, false);
            final int t = random.nextBoolean() ? HONEST : HIGH;
            final long segment = begin(t, false, now);
            now = until(now + random.nextLong(slow ? 60 * MS : 3 * MS), now, ran, false);
            if (random.nextInt(4) != 0) {
                s.onGiven(t, segment, now);
                now = until(now + random.nextLong(30 * MS), now, ran, true);
            }
            s.end(t, segment, now);
        }
        for (int to = 0; to < ran.size(); to++) {
            long sum = 0;
            long had = 0;
            for (int from = to; from >= 0; from--) {
                final long[] piece = ran.get(from);
                sum += piece[1] - piece[0];
                had += piece[2] * (piece[1] - piece[0]);
                final long windowNs = ran.get(to)[1] - piece[0];
                final long boundNs = percent * (windowNs + SECOND) / 100 + 2;
                assertTrue(had <= boundNs, "seed " + seed + ": had " + had + " ns of " + windowNs);
                assertTrue(sum <= boundNs + GRACE_NS + windowNs / 100, "seed " + seed + ": ran " + sum + " ns of "
                    + windowNs);
            }
        }
    }

    private long until(final long endNs, final long beginNs, final List<long[]> ran, final boolean had) {
        long now = beginNs;
        while (now < endNs) {   // timers in time
            final long next = Math.min(endNs, s.nextTimerNs());
            final int t = s.runningTask(0);
            if (t != 9 && t >= 0 && s.isRealTime(t) && next > now) {
                ran.add(new long[] {now, next, had ? 1 : 0});
            }
            now = next;
            s.onTimer(now);
        }
        return now;
    }
}
