/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.domains.Domain;

/**
 * The invariants of the design, one property each (the eighth, that nothing is allocated, is {@link AllocationTest}).
 * They look at what the scheduler says and answers; from the reference they take only who is begun, and the ranking.
 */
@Domain(Histories.class)
class InvariantProperties {
    private static final int TRIES = 1500;

    /** Contexts that the sink was told to keep off. */
    private static final class OffSet {
        private final Set<Integer> off = new TreeSet<>();

        void follow(final Rig rig) {
            for (final Call c : rig.calls) {
                if (c.kind() == Call.Kind.DISABLE) {
                    assertTrue(off.add(c.id()), () -> "disabled twice: " + c);
                } else if (c.kind() == Call.Kind.ENABLE) {
                    assertTrue(off.remove(c.id()), () -> "enabled twice: " + c);
                }
            }
            off.retainAll(rig.reference.contexts.keySet());
        }
    }

    // Invariant 1.
    @Property(tries = TRIES)
    void shouldLetAtMostOneRealTimeSegmentHoldAGpu(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                if (rig.reference.preemptive && !rig.reference.policy.equals("rr")) {
                    assertExclusive(rig, gpu, a);
                }
            }
        }
    }

    private static void assertExclusive(final Rig rig, final int gpu, final Action a) {
        final List<Reference.Segment> running = running(rig, gpu);
        if (running.stream().anyMatch(rig.reference::realTime)) {
            assertEquals(1, running.size(), () -> "beside a real-time segment nothing runs, after " + a);
        }
        if (!rig.reference.realTimeRanked(gpu).isEmpty()) {
            assertEquals(1, running.stream().map(rig.reference::contextOf).distinct().count(),
                () -> "one context alone has the GPU while a real-time segment is begun, after " + a);
        }
    }

    // Invariant 1, where no context can be disabled. Changes of policy or priority cannot revoke a grant.
    @Property(tries = TRIES)
    void shouldLetAtMostOneRealTimeSegmentThroughTheGate(@ForAll final History any) {
        final History h = any.with(false, any.optimistic());
        final Rig rig = new Rig(h, true);
        for (final Action a : h.actions()) {
            final Map<Integer, Long> ranBefore = runningTickets(rig);
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                final List<Reference.Segment> running = running(rig, gpu);
                if (!rig.reranked && !rig.reference.policy.equals("rr")
                    && running.stream().anyMatch(rig.reference::realTime)) {
                    assertEquals(1, running.size(), () -> "a real-time segment passed the gate alone, after " + a);
                }
            }
            for (final Reference.Segment s : rig.reference.begun) {
                if (s.ticket == ranBefore.getOrDefault(s.task, 0L)) {
                    assertEquals(SegmentState.RUNNING, rig.scheduler.state(s.task), "the gate displaces nothing");
                }
            }
            assertTrue(rig.calls.stream().noneMatch(c -> c.kind() == Call.Kind.PREEMPT
                || c.kind() == Call.Kind.DISABLE || c.kind() == Call.Kind.PREGRANT && c.detail() == 1));
        }
    }

    // Invariant 2, in both forms: all others are off, or those that the running segment outranks.
    @Property(tries = TRIES)
    void shouldKeepEveryOtherUnprotectedContextOffThatTheRunningSegmentMayKeepOff(@ForAll final History h) {
        final Rig rig = new Rig(h);
        final OffSet told = new OffSet();
        for (final Action a : h.actions()) {
            rig.apply(a);
            told.follow(rig);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                assertContexts(rig, told, gpu, a);
            }
        }
    }

    private static void assertContexts(final Rig rig, final OffSet told, final int gpu, final Action a) {
        final boolean mustBeOff = rig.reference.preemptive && rig.reference.exclusive(gpu);
        final Set<Integer> own = new HashSet<>();
        final List<Reference.Segment> running = running(rig, gpu);
        running.forEach(s -> own.add(rig.reference.contextOf(s)));
        rig.reference.contexts.forEach((c, context) -> {
            if (context.gpu() == gpu) {
                final boolean ready = rig.mayBeReady(c);
                final boolean off = mustBeOff && !own.contains(c) && rig.reference.steerable(c) && !ready;
                if (mustBeOff && !own.contains(c) && ready) {
                    assertTrue(rig.reference.policy.equals("fp"), () -> "context " + c + " is ready, after " + a);
                    assertTrue(rig.onlyTask(c).priority() > rig.reference.priorityOf(running.get(0)),
                        () -> "context " + c + " is ready and outranked, after " + a);
                }
                assertEquals(off, told.off.contains(c), () -> "context " + c + " as told, after " + a);
                assertEquals(!off, rig.scheduler.contextDesired(c), () -> "context " + c + " as asked, after " + a);
            }
        });
    }

    // Invariant 3.
    @Property(tries = TRIES)
    void shouldKeepEachBegunSegmentWaitingOrRunningOrPreempted(@ForAll final History h) {
        final Rig rig = new Rig(h);
        final Map<Integer, String> told = new HashMap<>();
        for (final Action a : h.actions()) {
            rig.apply(a);
            // No decision says that a segment ended: the caller said so.
            told.keySet().removeIf(task -> rig.reference.segmentOf(task) == null);
            rig.reference.begun.forEach(s -> told.putIfAbsent(s.task, "waiting"));
            for (final Call c : rig.calls) {
                switch (c.kind()) {
                    case GRANT -> assertEquals("waiting", told.put(c.id(), "running"), () -> "before " + c);
                    case RESUME -> assertEquals("preempted", told.put(c.id(), "running"), () -> "before " + c);
                    case PREEMPT -> assertEquals("running", told.put(c.id(), "preempted"), () -> "before " + c);
                    default -> {
                        // says nothing about states
                    }
                }
            }
            for (int t = 0; t <= History.TASKS; t++) {
                assertEquals(told.getOrDefault(t, "idle"), SegmentState.name(rig.scheduler.state(t)));
            }
        }
    }

    // Invariant 4. The best segment matters even while it waits: its context has inherited its rank.
    @Property(tries = TRIES)
    void shouldChangeNothingElseWhenASegmentEndsThatNeitherRunsNorLeads(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (final Reference.Segment s : List.copyOf(rig.reference.begun)) {
                final boolean leads = rig.reference.ranked(rig.reference.gpuOf(s.task)).get(0) == s;
                if (rig.scheduler.state(s.task) == SegmentState.RUNNING || leads) {
                    continue;
                }
                final int victim = s.task;
                final int context = rig.reference.contextOf(s);
                final Map<Integer, Integer> before = states(rig);
                // What is due by now would be told with any event; it is no consequence of this one.
                rig.reference.time(rig.reference.nowNs);
                rig.scheduler.onTimer(rig.reference.nowNs);
                rig.recorder.take();
                if (a.spice() % 2 == 0) {
                    rig.reference.end(victim, s.ticket);
                    assertEquals(Outcome.ACCEPTED, rig.scheduler.end(victim, s.ticket, rig.reference.nowNs));
                } else {
                    rig.reference.removeTask(victim);
                    assertTrue(rig.scheduler.removeTask(victim, rig.reference.nowNs));
                }
                before.remove(victim);
                final Map<Integer, Integer> after = states(rig);
                after.remove(victim);
                assertEquals(before, after);
                // a task that it leaves alone in its context may begin at once, and its context then stays on
                assertEquals(List.of(), rig.recorder.take().stream()
                    .filter(c -> c.kind() != Call.Kind.PREGRANT || c.detail() == 0)
                    .filter(c -> c.kind() != Call.Kind.ENABLE || c.id() != context || !rig.mayBeReady(context))
                    .toList());
            }
        }
    }

    // Invariant 5.
    @Property(tries = TRIES)
    void shouldGrantInPolicyOrder(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                final int g = gpu;
                final List<Integer> ranking = rig.reference.ranked(gpu).stream().map(s -> s.task).toList();
                int last = -1;
                for (final Call c : rig.calls.stream()
                    .filter(c -> c.kind() == Call.Kind.GRANT && c.gpu() == g).toList()) {
                    final int rank = ranking.indexOf(c.id());
                    assertTrue(rank > last || rig.begunAhead, () -> "grants of one event in order, after " + a);
                    last = rank;
                    // A begin that did not wait is granted because it is already there, whatever its rank.
                    if (!rig.begunAhead || c.id() != a.pick() % (History.TASKS + 1)) {
                        for (final int better : ranking.subList(0, rank)) {
                            assertNotEquals(SegmentState.WAITING, rig.scheduler.state(better),
                                () -> "task " + better + " waits and is better than task " + c.id() + " after " + a);
                        }
                    }
                }
            }
        }
    }

    // Invariant 5, inside one context, which the hardware cannot divide.
    @Property(tries = TRIES)
    void shouldGrantOneTaskOfAContextAtATimeAndLendItTheRankOfTheBest(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            if (rig.reference.policy.equals("rr")) {
                continue;
            }
            for (final Call c : rig.calls) {
                final Reference.Segment s = rig.reference.segmentOf(c.id());
                if (c.kind() == Call.Kind.GRANT && rig.reference.realTime(s) && !rig.begunAhead) {
                    assertEquals(1, rig.reference.begun.stream().filter(o -> o.granted
                        && rig.reference.contextOf(o) == rig.reference.contextOf(s)).count(),
                        () -> c + " is the only grant of its context, after " + a);
                }
            }
            for (int gpu = 0; gpu < History.GPUS && rig.reference.preemptive; gpu++) {
                final List<Reference.Segment> rt = rig.reference.realTimeRanked(gpu);
                if (!rt.isEmpty()) {
                    final int best = rig.reference.contextOf(rt.get(0));
                    running(rig, gpu).forEach(s -> assertEquals(best, rig.reference.contextOf(s),
                        () -> "the context of the best segment has the GPU, after " + a));
                }
            }
        }
    }

    // Invariant 6.
    @Property(tries = TRIES)
    void shouldNeverLeaveAGpuIdleWhileASegmentIsBegun(@ForAll final History h) {
        final Rig rig = new Rig(h);
        final OffSet told = new OffSet();
        for (final Action a : h.actions()) {
            rig.apply(a);
            told.follow(rig);
            assertBusy(rig, told);
        }
        // Whatever happened: let what runs end, one by one, and everything that waits gets its turn.
        int left = rig.reference.begun.size();
        while (left > 0) {
            final List<Reference.Segment> running = new ArrayList<>();
            for (int gpu = 0; gpu < History.GPUS; gpu++) {
                running.addAll(running(rig, gpu));
            }
            assertFalse(running.isEmpty(), "something runs while something is begun");
            final Reference.Segment s = running.get(left % running.size());
            rig.recorder.take();
            rig.reference.end(s.task, s.ticket);
            assertEquals(Outcome.ACCEPTED, rig.scheduler.end(s.task, s.ticket, rig.reference.nowNs));
            rig.calls = rig.recorder.take();
            told.follow(rig);
            assertBusy(rig, told);
            left--;
        }
        assertEquals(Set.of(), told.off, "an idle machine has every context on the hardware");
        assertEquals(Long.MAX_VALUE, rig.scheduler.nextTimerNs(), "an idle machine needs no timer");
    }

    private static void assertBusy(final Rig rig, final OffSet told) {
        for (int gpu = 0; gpu < History.GPUS; gpu++) {
            if (!rig.reference.ranked(gpu).isEmpty()) {
                final List<Reference.Segment> running = running(rig, gpu);
                assertFalse(running.isEmpty(), "a GPU with begun segments is in use");
                running.forEach(s -> assertFalse(told.off.contains(rig.reference.contextOf(s)),
                    () -> "task " + s.task + " runs, but its context is off"));
            }
        }
    }

    // Invariant 7.
    @Property(tries = TRIES)
    void shouldDecideTheSameForTheSameEvents(@ForAll final History h) {
        final Rig first = new Rig(h);
        final Rig second = new Rig(h);
        h.actions().forEach(first::apply);
        h.actions().forEach(second::apply);
        assertEquals(first.log(), second.log());
    }

    // What makes pre-grants sound: who may begin without waiting would not have waited.
    @Property(tries = TRIES)
    void shouldNeverPreemptAPregrantedBeginAtOnce(@ForAll final History any) {
        final History h = any.with(true, true);
        final Rig rig = new Rig(h, true);
        for (final Action a : h.actions()) {
            rig.apply(a);
            if (rig.begunAhead) {
                final int task = a.pick() % (History.TASKS + 1);
                assertEquals(SegmentState.RUNNING, rig.scheduler.state(task));
                assertTrue(rig.calls.stream().anyMatch(c -> c.kind() == Call.Kind.GRANT && c.id() == task));
                assertTrue(rig.calls.stream().noneMatch(c -> c.kind() == Call.Kind.PREEMPT && c.id() == task));
            }
        }
    }

    private static List<Reference.Segment> running(final Rig rig, final int gpu) {
        return rig.reference.ranked(gpu).stream()
            .filter(s -> rig.scheduler.state(s.task) == SegmentState.RUNNING).toList();
    }

    private static Map<Integer, Long> runningTickets(final Rig rig) {
        final Map<Integer, Long> tickets = new HashMap<>();
        tasksIn(rig, SegmentState.RUNNING).forEach(t -> tickets.put(t, rig.scheduler.ticket(t)));
        return tickets;
    }

    private static Set<Integer> tasksIn(final Rig rig, final int state) {
        final Set<Integer> tasks = new HashSet<>();
        rig.reference.begun.stream().filter(s -> rig.scheduler.state(s.task) == state).forEach(s -> tasks.add(s.task));
        return tasks;
    }

    private static Map<Integer, Integer> states(final Rig rig) {
        final Map<Integer, Integer> states = new HashMap<>();
        for (int t = 0; t <= History.TASKS; t++) {
            states.put(t, rig.scheduler.state(t));
        }
        return states;
    }
}
