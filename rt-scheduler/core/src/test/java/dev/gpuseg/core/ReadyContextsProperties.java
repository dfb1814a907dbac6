/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Keep-ready against a scheduler without it that is given the same history. */
class ReadyContextsProperties {
    private static final int TASKS = 6;
    private static final int CONTEXTS = 5;
    private static final int STRANGER = 7;
    private static final int STEPS = 300;
    private static final OverrunAction[] ACTIONS =
        {OverrunAction.NOTIFY, OverrunAction.DEMOTE, OverrunAction.SKIP_NEXT};

    private final int[] priority = new int[TASKS];
    private final int[] contextOf = new int[TASKS];

    private SegmentScheduler scheduler(final Policy policy) {
        final SegmentScheduler s = new SegmentScheduler(
            new SchedulerConfig(policy, 1, 10, 10, true, true, Unmanaged.BEST_EFFORT), new Recorder());
        for (int c = 0; c < CONTEXTS; c++) {
            s.addContext(c, 0, ContextKind.MANAGED);
        }
        s.addContext(STRANGER, 0, ContextKind.UNMANAGED);
        for (int t = 0; t < TASKS; t++) {
            s.addTask(new TaskParameters(t, contextOf[t], priority[t], 0, 100, t % 2 == 0 ? 0 : 60, true)
                .onOverrun(OverrunAction.DEMOTE));
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

    @Property(tries = 300)
    void keepingReadyLeavesOnWhoMayBeginAtOnceAndNobodyElse(@ForAll final long seed) {
        final Random random = new Random(seed);
        draw(random);
        final SegmentScheduler plain = scheduler(FixedPriority.INSTANCE);
        final SegmentScheduler ready = scheduler(FixedPriority.INSTANCE);
        ready.setKeepReady(true, 0);
        long nowNs = 0;
        for (int i = 0; i < STEPS; i++) {
            nowNs += 1 + random.nextInt(40);
            final int change = random.nextInt(20);
            final int t = random.nextInt(TASKS);
            if (change < 2) {
                priority[t] = random.nextInt(10);
                plain.setPriority(t, priority[t], 0, nowNs);
                ready.setPriority(t, priority[t], 0, nowNs);
            } else if (change == 2) {
                final OverrunAction action = ACTIONS[random.nextInt(ACTIONS.length)];
                plain.setOverrunAction(t, action, nowNs);
                ready.setOverrunAction(t, action, nowNs);
            } else if (change == 3) {
                reopen(random, t, nowNs, plain, ready);
            } else if (change == 4) {
                final Policy policy = random.nextInt(3) == 0 ? new HighestClassFirst(3) : policy(random);
                plain.setPolicy(policy, nowNs);
                ready.setPolicy(policy, nowNs);
            } else {
                event(random, nowNs, plain, ready);
            }
            sameSegments(plain, ready);
            for (int c = 0; c <= STRANGER; c = c == CONTEXTS - 1 ? STRANGER : c + 1) {
                assertEquals(plain.contextDesired(c) || isReady(ready, c), ready.contextDesired(c), "context " + c);
            }
        }
    }

    /** Theorem 7 rests on this: what is on is a function of the holder, and less for a holder of higher rank. */
    @Property(tries = 300)
    void aChangeOfTheHolderOnlyTakesOffOrOnlyBringsBackIfContextsAreKeptReady(@ForAll final long seed) {
        final Random random = new Random(seed);
        final List<Integer> distinct = IntStream.range(1, 10).boxed().collect(Collectors.toList());
        Collections.shuffle(distinct, random);
        for (int t = 0; t < TASKS; t++) {
            priority[t] = distinct.get(t);
            contextOf[t] = t;
        }
        final SegmentScheduler s = new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, 1, 10, 10, true,
            true, Unmanaged.BEST_EFFORT), new Recorder());
        s.setKeepReady(true, 0);
        s.addContext(STRANGER, 0, ContextKind.UNMANAGED);
        for (int t = 0; t < TASKS; t++) {
            s.addContext(t, 0, ContextKind.MANAGED);
            s.addTask(new TaskParameters(t, t, priority[t], 0, 0, 0, true));
        }
        final Map<Integer, Set<Integer>> onFor = new HashMap<>();
        Set<Integer> before = on(s);
        int changes = 0;
        for (long nowNs = 1; nowNs <= STEPS; nowNs++) {
            final int t0 = random.nextInt(TASKS);
            if (s.state(t0) == SegmentState.IDLE) {
                s.begin(t0, nowNs, 0, 0, s.isPregranted(t0) && random.nextBoolean(), nowNs, nowNs);
            } else {
                s.end(t0, s.ticket(t0), nowNs);
            }
            final Set<Integer> now = on(s);
            final int holder = s.runningTask(0);
            final Set<Integer> expected = onFor.computeIfAbsent(holder, x -> now);
            assertEquals(expected, now, "contexts on for holder " + holder);
            assertTrue(before.containsAll(now) || now.containsAll(before), before + " became " + now);
            changes += before.equals(now) ? 0 : 1;
            for (int t = 0; holder != SegmentScheduler.NONE && t < TASKS; t++) {
                assertEquals(t == holder || priority[t] > priority[holder], now.contains(t), "context " + t);
            }
            before = now;
        }
        assertTrue(changes > 0);
    }

    /** The task is closed, and opened in another context. */
    private void reopen(final Random random, final int t, final long nowNs, final SegmentScheduler a,
        final SegmentScheduler b) {
        contextOf[t] = random.nextInt(CONTEXTS);
        for (final SegmentScheduler s : new SegmentScheduler[] {a, b}) {
            s.removeTask(t, nowNs);
            s.addTask(new TaskParameters(t, contextOf[t], priority[t], 0, 100, t % 2 == 0 ? 0 : 60, true)
                .onOverrun(OverrunAction.SKIP_NEXT));
        }
    }

    private static Set<Integer> on(final SegmentScheduler s) {
        return IntStream.rangeClosed(0, STRANGER).filter(c -> c < TASKS || c == STRANGER).filter(s::contextDesired)
            .boxed().collect(Collectors.toSet());
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
