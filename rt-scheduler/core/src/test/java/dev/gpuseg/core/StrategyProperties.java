/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Strategies and hold-off against a scheduler without them that is given the same history. */
class StrategyProperties {
    private static final int TASKS = 6;
    private static final int CONTEXTS = 5;
    private static final int STRANGER = 7;
    private static final long HOLDOFF_NS = 50;
    private static final int STEPS = 300;

    private final int[] priority = new int[TASKS];
    private final int[] contextOf = new int[TASKS];

    private SegmentScheduler scheduler(final Policy policy, final Strategy[] strategies) {
        final SegmentScheduler s = new SegmentScheduler(
            new SchedulerConfig(policy, 1, 10, 10, true, true, Unmanaged.BEST_EFFORT), new Recorder());
        for (int c = 0; c < CONTEXTS; c++) {
            s.addContext(c, 0, ContextKind.MANAGED);
        }
        s.addContext(STRANGER, 0, ContextKind.UNMANAGED);
        for (int t = 0; t < TASKS; t++) {
            s.addTask(new TaskParameters(t, contextOf[t], priority[t], 0, 100, t % 2 == 0 ? 0 : 60, true)
                .onOverrun(OverrunAction.DEMOTE).withStrategy(strategies == null ? Strategy.INTERRUPT : strategies[t]));
        }
        return s;
    }

    private void draw(final Random random) {
        for (int t = 0; t < TASKS; t++) {
            priority[t] = random.nextInt(4) == 0 ? 0 : 1 + random.nextInt(9);
            contextOf[t] = random.nextInt(CONTEXTS);
        }
    }

    private static Policy policy(final Random random) {
        return random.nextBoolean() ? FixedPriority.INSTANCE : EarliestDeadlineFirst.INSTANCE;
    }

    /** The same event to both; what it returned is the same too. */
    private static void event(final Random random, final long nowNs, final SegmentScheduler a,
        final SegmentScheduler b) {
        final int t = random.nextInt(TASKS);
        if (a.state(t) == SegmentState.IDLE && random.nextInt(3) > 0) {
            final boolean ahead = a.isPregranted(t) && random.nextBoolean();
            assertEquals(a.begin(t, nowNs, 0, 0, ahead, nowNs, nowNs), b.begin(t, nowNs, 0, 0, ahead, nowNs, nowNs));
        } else if (a.state(t) != SegmentState.IDLE && random.nextBoolean()) {
            assertEquals(a.end(t, a.ticket(t), nowNs), b.end(t, b.ticket(t), nowNs));
        } else {
            a.onTimer(nowNs);
            b.onTimer(nowNs);
        }
    }

    private static void sameSegments(final SegmentScheduler a, final SegmentScheduler b) {
        for (int t = 0; t < TASKS; t++) {
            assertEquals(a.state(t), b.state(t), "task " + t);
            assertEquals(a.isPregranted(t), b.isPregranted(t), "pre-grant of task " + t);
        }
        assertEquals(a.runningTask(0), b.runningTask(0));
    }

    private boolean isRealTime(final int context) {
        for (int t = 0; t < TASKS; t++) {
            if (contextOf[t] == context && priority[t] > 0) {
                return true;
            }
        }
        return false;
    }

    @Property(tries = 300)
    void aHoldoffDelaysNothingButTheReturnOfBestEffort(@ForAll final long seed) {
        final Random random = new Random(seed);
        draw(random);
        final Policy policy = policy(random);
        final SegmentScheduler plain = scheduler(policy, null);
        final SegmentScheduler resting = scheduler(policy, null);
        resting.setResumeHoldoff(HOLDOFF_NS, 0);
        long nowNs = 0;
        long lastBegunNs = 0;
        for (int i = 0; i < STEPS; i++) {
            nowNs += 1 + random.nextInt(40);
            final boolean wasBegun = plain.begunCount(0) > 0;
            event(random, nowNs, plain, resting);
            sameSegments(plain, resting);
            lastBegunNs = wasBegun || plain.begunCount(0) > 0 ? nowNs : lastBegunNs;
            for (int c = 0; c <= STRANGER; c = c == CONTEXTS - 1 ? STRANGER : c + 1) {
                if (plain.contextDesired(c) != resting.contextDesired(c)) {
                    assertTrue(plain.contextDesired(c), "a hold-off puts nobody on");
                    assertEquals(0, plain.begunCount(0), "only while no segment is begun");
                    assertFalse(isRealTime(c), "context " + c + " has a real-time task");
                    assertTrue(nowNs - lastBegunNs < HOLDOFF_NS, "rests for " + (nowNs - lastBegunNs));
                }
            }
        }
    }

    @Property(tries = 300)
    void aStrategyChangesNothingButWhatRunsWithoutSegments(@ForAll final long seed) {
        final Random random = new Random(seed);
        draw(random);
        final Policy policy = policy(random);
        final Strategy[] strategies = new Strategy[TASKS];
        for (int t = 0; t < TASKS; t++) {
            strategies[t] = Strategy.values()[random.nextInt(3)];
        }
        final SegmentScheduler plain = scheduler(policy, null);
        final SegmentScheduler mixed = scheduler(policy, strategies);
        long nowNs = 0;
        for (int i = 0; i < STEPS; i++) {
            nowNs += 1 + random.nextInt(40);
            event(random, nowNs, plain, mixed);
            sameSegments(plain, mixed);
            boolean sliced = mixed.begunCount(0) > 0;
            for (int t = 0; t < TASKS; t++) {
                sliced &= mixed.state(t) != SegmentState.RUNNING || strategies[t] == Strategy.SLICE;
            }
            assertEquals(sliced || plain.contextDesired(STRANGER), mixed.contextDesired(STRANGER));
            for (int t = 0; t < TASKS; t++) {
                if (mixed.state(t) != SegmentState.IDLE) {
                    assertEquals(plain.contextDesired(contextOf[t]), mixed.contextDesired(contextOf[t]), "task " + t);
                }
            }
        }
    }

    @Property(tries = 300)
    void keepingReadyLeavesOnWhoMayBeginAtOnceAndNobodyElse(@ForAll final long seed) {
        final Random random = new Random(seed);
        draw(random);
        final SegmentScheduler plain = scheduler(FixedPriority.INSTANCE, null);
        final SegmentScheduler ready = scheduler(FixedPriority.INSTANCE, null);
        ready.setKeepReady(true, 0);
        long nowNs = 0;
        for (int i = 0; i < STEPS; i++) {
            nowNs += 1 + random.nextInt(40);
            if (random.nextInt(10) == 0) {
                final int t = random.nextInt(TASKS);
                priority[t] = random.nextInt(10);
                plain.setPriority(t, priority[t], 0, nowNs);
                ready.setPriority(t, priority[t], 0, nowNs);
            } else {
                event(random, nowNs, plain, ready);
            }
            sameSegments(plain, ready);
            for (int c = 0; c <= STRANGER; c = c == CONTEXTS - 1 ? STRANGER : c + 1) {
                assertEquals(plain.contextDesired(c) || isReady(ready, c), ready.contextDesired(c), "context " + c);
            }
        }
    }

    private boolean isReady(final SegmentScheduler s, final int context) {
        int only = -1;
        for (int t = 0; t < TASKS; t++) {
            if (contextOf[t] == context) {
                if (only >= 0) {
                    return false;
                }
                only = t;
            }
        }
        return only >= 0 && s.state(only) == SegmentState.IDLE && s.isPregranted(only);
    }
}
