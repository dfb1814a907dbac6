/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/**
 * A scheduler that has tasks with room of their own beside one that has not, given the same events of the others: it
 * decides the same about the others, and the reserved ones run from begin to end.
 */
class ReservedProperties {
    private static final int GPUS = 2;
    private static final int OTHERS = 8;
    private static final int TASKS = 11;
    private static final int CONTEXTS = 6;
    private static final int STEPS = 300;
    private static final Policy[] POLICIES = {FixedPriority.INSTANCE, EarliestDeadlineFirst.INSTANCE,
        RoundRobin.INSTANCE};

    private final Recorder told = new Recorder();
    private final Recorder alone = new Recorder();
    private final long[] ticket = new long[TASKS];
    private SegmentScheduler scheduler;
    private SegmentScheduler others;
    private long nowNs = 1;

    @Property(tries = 500)
    void reservedTasksRunFromBeginToEndAndChangeNothingForOthers(@ForAll final long seed,
        @ForAll final boolean preemptive) {
        new ReservedProperties().run(new Random(seed), preemptive);   // the instance is the same for all tries
    }

    private void run(final Random random, final boolean preemptive) {
        scheduler = scheduler(told, preemptive);
        others = scheduler(alone, preemptive);
        for (int c = 0; c < CONTEXTS; c++) {
            scheduler.addContext(c, c % GPUS, ContextKind.MANAGED);
            if (c < CONTEXTS - 1) {
                others.addContext(c, c % GPUS, ContextKind.MANAGED);
            }
        }
        for (int t = 0; t < TASKS; t++) {
            add(random, t);
        }
        for (int i = 0; i < STEPS; i++) {
            assertEquals(alone.take(), told.take().stream().filter(ReservedProperties::isOfOthers).toList());
            step(random);
            for (int t = OTHERS; t < TASKS; t++) {
                assertEquals(scheduler.ticket(t) > 0 ? SegmentState.RUNNING : SegmentState.IDLE, scheduler.state(t));
            }
            assertTrue(scheduler.contextDesired(CONTEXTS - 1), "the context of reserved tasks stays on");
            for (int gpu = 0; gpu < GPUS; gpu++) {
                assertEquals(others.runningTask(gpu), scheduler.runningTask(gpu));
            }
        }
    }

    /** Reserved tasks are those from OTHERS on, all in the last context; all others are in the contexts before. */
    private void add(final Random random, final int t) {
        final boolean reserved = t >= OTHERS;
        final TaskParameters p = new TaskParameters(t, reserved ? CONTEXTS - 1 : t % (CONTEXTS - 1),
            random.nextInt(3) * 30, 0, random.nextInt(2) * 400L, random.nextInt(2) * 150L, random.nextInt(4) != 0)
            .onOverrun(OverrunAction.values()[random.nextInt(4)]);
        scheduler.addTask(reserved ? p.inReserve() : p);
        if (!reserved) {
            others.addTask(p);
        }
        ticket[t] = 0;
    }

    private void step(final Random random) {
        nowNs += random.nextInt(80);
        scheduler.onTimer(nowNs);
        others.onTimer(nowNs);
        final int t = random.nextInt(TASKS);
        final boolean reserved = t >= OTHERS;
        switch (random.nextInt(12)) {
            case 0, 1, 2, 3, 4 -> {
                final boolean ahead = scheduler.isPregranted(t);
                final int outcome = scheduler.begin(t, ++ticket[t], 0, 0, ahead, nowNs, nowNs);
                if (!reserved) {
                    assertEquals(others.begin(t, ticket[t], 0, 0, ahead, nowNs, nowNs), outcome);
                }
            }
            case 5, 6, 7, 8 -> {
                final long current = scheduler.ticket(t);
                scheduler.end(t, current, nowNs);
                if (!reserved) {
                    others.end(t, current, nowNs);
                }
            }
            case 9 -> {
                final int priority = random.nextInt(100);
                scheduler.setPriority(t, priority, 0, nowNs);
                if (!reserved) {
                    others.setPriority(t, priority, 0, nowNs);
                }
            }
            case 10 -> {
                scheduler.removeTask(t, nowNs);
                if (!reserved) {
                    others.removeTask(t, nowNs);
                }
                add(random, t);
            }
            default -> {
                final Policy policy = POLICIES[random.nextInt(POLICIES.length)];
                scheduler.setPolicy(policy, nowNs);
                others.setPolicy(policy, nowNs);
            }
        }
    }

    private static boolean isOfOthers(final Call call) {
        if (call.kind() == Call.Kind.DISABLE || call.kind() == Call.Kind.ENABLE) {
            return call.id() != CONTEXTS - 1;
        }
        assertFalse(call.id() >= OTHERS && call.kind() == Call.Kind.PREEMPT, call::toString);
        return call.id() < OTHERS;
    }

    @Example
    void aReservedTaskIsPregrantedBesideAHigherOneUnlessItsNextBeginIsRefused() {
        scheduler = scheduler(told, true);
        scheduler.addContext(0, 0, ContextKind.MANAGED);
        scheduler.addContext(1, 0, ContextKind.MANAGED);
        scheduler.addTask(new TaskParameters(0, 0, 90, 0, 0, 0, true));
        scheduler.addTask(new TaskParameters(1, 1, 10, 0, 0, 5, true).onOverrun(OverrunAction.SKIP_NEXT).inReserve());
        scheduler.begin(0, 1, 0, 0, true, 10, 10);
        assertTrue(scheduler.isPregranted(1) && scheduler.contextDesired(1));
        assertEquals(Outcome.ACCEPTED, scheduler.begin(1, 1, 0, 0, true, 11, 11));
        scheduler.onTimer(30);
        assertFalse(scheduler.isPregranted(1), "used up its budget");
        scheduler.end(1, 1, 31);
        assertEquals(Outcome.SKIPPED, scheduler.begin(1, 2, 0, 0, false, 32, 32));
        assertTrue(scheduler.isPregranted(1));
    }

    @Example
    void tasksOfOneContextAreAllReservedOrNone() {
        scheduler = scheduler(told, true);
        scheduler.addContext(0, 0, ContextKind.MANAGED);
        scheduler.addTask(new TaskParameters(0, 0, 90, 0, 0, 0, true));
        final TaskParameters reserved = new TaskParameters(1, 0, 10, 0, 0, 0, true).inReserve();
        assertThrows(IllegalArgumentException.class, () -> scheduler.addTask(reserved));
        scheduler.removeTask(0, 1);
        scheduler.addTask(reserved);
        assertFalse(scheduler.isSteerable(0));
        scheduler.removeTask(1, 2);
        assertTrue(scheduler.isSteerable(0));
    }

    private static SegmentScheduler scheduler(final DecisionSink sink, final boolean preemptive) {
        return new SegmentScheduler(new SchedulerConfig(FixedPriority.INSTANCE, GPUS, TASKS, CONTEXTS, preemptive, true,
            Unmanaged.BEST_EFFORT), sink);
    }
}
