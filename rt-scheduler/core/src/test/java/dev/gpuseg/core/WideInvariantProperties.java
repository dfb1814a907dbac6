/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.domains.Domain;

/** The invariants of the design with partitions, classes, windows and actions on overrun. */
@Domain(WideHistories.class)
@Tag("long")
class WideInvariantProperties {
    private static final int TRIES = 1000;
    private final InvariantProperties plain = new InvariantProperties();

    // Invariant 1; classes let segments of one priority run together, and none of another.
    @Property(tries = TRIES)
    void shouldLetOneRealTimeSegmentOrOneClassHoldAGpu(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS && rig.reference.preemptive; gpu++) {
                final List<Reference.Segment> running = running(rig, gpu);
                if (rig.reference.policy.equals("rr") || running.stream().noneMatch(rig.reference::realTime)) {
                    continue;
                }
                if (rig.reference.policy.equals("classes")) {
                    assertOneClass(rig, gpu, running, a);
                } else {
                    assertEquals(1, running.size(), () -> "one alone holds the GPU, after " + a);
                }
            }
        }
    }

    /** What runs is of the best class, or has inherited it from a segment that waits in the same context. */
    private static void assertOneClass(final Rig rig, final int gpu, final List<Reference.Segment> running,
        final Action a) {
        final List<Reference.Segment> free = rig.reference.free(gpu);
        final int best = rig.reference.priorityOf(free.get(0));
        for (final Reference.Segment s : running) {
            assertTrue(free.stream().anyMatch(o -> rig.reference.contextOf(o) == rig.reference.contextOf(s)
                && rig.reference.priorityOf(o) == best), () -> "task " + s.task + " is of a lower class, after " + a);
        }
    }

    // Partitions never overlap: in a window, and in a guard, no other work is wanted on the GPU or runs there.
    @Property(tries = 1500)
    void shouldKeepEverybodyElseOutOfAWindow(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            if (!rig.reference.preemptive || !rig.reference.partitioned()) {
                continue;
            }
            final int owner = rig.reference.ownerAt(rig.reference.nowNs);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                final int on = gpu;
                final boolean lent = owner >= 0 && rig.reference.policy.endsWith("edf") && rig.reference.ranked(gpu)
                    .stream().noneMatch(s -> partition(rig, s) == owner && !rig.scheduler.isSuspended(s.task));
                if (lent || rig.reference.begun.stream().anyMatch(s -> rig.scheduler.isSuspended(s.task))) {
                    continue;
                }
                for (final Reference.Segment s : running(rig, gpu)) {
                    assertEquals(owner, partition(rig, s), () -> "task " + s.task + " runs, after " + a);
                }
                rig.reference.contexts.forEach((c, context) -> {
                    if (context.gpu() == on && rig.reference.steerable(c) && rig.scheduler.contextDesired(c)) {
                        assertEquals(owner, rig.reference.partitionOf(c), () -> "context " + c + " is on, after " + a);
                    }
                });
            }
            if (rig.reference.contexts.keySet().stream().anyMatch(rig.reference::steerable)) {
                assertTrue(rig.scheduler.nextTimerNs() <= nextBoundary(rig), "it looks again when a window ends");
            }
        }
    }

    private static int partition(final Rig rig, final Reference.Segment s) {
        return rig.reference.partitionOf(rig.reference.contextOf(s));
    }

    private static long nextBoundary(final Rig rig) {
        long at = rig.reference.nowNs + 1;
        while (rig.reference.ownerAt(at) == rig.reference.ownerAt(rig.reference.nowNs)) {
            at++;
        }
        return at;
    }

    // Invariant 2.
    @Property(tries = TRIES)
    void shouldWantNoContextOnBesideARealTimeSegmentButReadyOnes(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS && rig.reference.preemptive; gpu++) {
                final int on = gpu;
                final List<Reference.Segment> running = running(rig, gpu);
                if (rig.reference.policy.equals("rr") || running.stream().noneMatch(rig.reference::realTime)) {
                    continue;
                }
                final List<Integer> own = running.stream().map(rig.reference::contextOf).toList();
                rig.reference.contexts.forEach((c, context) -> {
                    if (context.gpu() == on && rig.reference.steerable(c)) {
                        assertTrue(!rig.scheduler.contextDesired(c) || own.contains(c)
                            || rig.reference.policy.equals("classes") || rig.mayBeReady(c),
                            () -> "context " + c + " is on, after " + a);
                    }
                });
            }
        }
    }

    // What a suspended segment's process may do: nothing, until the segment ends.
    @Property(tries = TRIES)
    void shouldKeepASuspendedContextOff(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (final Reference.Segment s : rig.reference.begun) {
                if (rig.scheduler.isSuspended(s.task) && !rig.reference.policy.equals("rr")) {
                    final int c = rig.reference.contextOf(s);
                    assertTrue(rig.reference.preemptive, "a gate suspends no segment");
                    assertEquals(!rig.reference.steerable(c), rig.scheduler.contextDesired(c), () -> "after " + a);
                    assertFalse(rig.scheduler.state(s.task) == SegmentState.RUNNING, () -> "after " + a);
                }
            }
        }
    }

    // Invariant 3. Time passes before each event, so that nothing begins and ends within one call; at a gate an overrun
    // ends a segment by itself, which this way of counting does not follow.
    @Property(tries = TRIES)
    void shouldKeepEachBegunSegmentWaitingOrRunningOrPreempted(@ForAll final History any) {
        plain.shouldKeepEachBegunSegmentWaitingOrRunningOrPreempted(
            new History(any.policy(), true, any.optimistic(), any.unmanaged(), any.actions().stream()
                .flatMap(a -> Stream.of(new Action(Action.Op.TIMER, 0, 0, 0, 0, a.stepNs()),
                    new Action(a.op(), a.pick(), a.priority(), a.length(), a.spice(), 0))).toList(), true,
                any.keepReady()));
    }

    // Invariant 6: who is not held back by its window or its suspension does not wait for an idle GPU.
    @Property(tries = TRIES)
    void shouldNeverLeaveAGpuIdleWhileAFreeSegmentIsBegun(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                assertTrue(rig.reference.free(gpu).isEmpty() || !running(rig, gpu).isEmpty(), () -> "after " + a);
            }
        }
    }

    // Invariant 7.
    @Property(tries = TRIES)
    void shouldDecideTheSameForTheSameEvents(@ForAll final History h) {
        plain.shouldDecideTheSameForTheSameEvents(h);
    }

    @Property(tries = TRIES)
    void shouldNeverPreemptAPregrantedBeginAtOnce(@ForAll final History h) {
        plain.shouldNeverPreemptAPregrantedBeginAtOnce(h);
    }

    private static List<Reference.Segment> running(final Rig rig, final int gpu) {
        return rig.reference.ranked(gpu).stream()
            .filter(s -> rig.scheduler.state(s.task) == SegmentState.RUNNING).toList();
    }
}
