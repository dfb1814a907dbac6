/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.domains.Domain;

/** The scheduler against the plain reference: same answers, same calls in the same phases. */
@Domain(Histories.class)
class ReferenceProperties {
    private static final Comparator<Call> ANY_ORDER = Comparator.comparing(Call::kind).thenComparingInt(Call::id);

    @Property(tries = 2000)
    void shouldDecideAsTheReferenceDoes(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            assertEquals(rig.expectedOutcome, rig.outcome, () -> "outcome of " + a);
            assertPhases(rig, a);
            assertAnswers(rig, a);
        }
    }

    private static void assertPhases(final Rig rig, final Action a) {
        final List<Call> expected = new ArrayList<>();
        final List<Call> actual = new ArrayList<>();
        int at = 0;
        for (final List<Call> phase : rig.reference.phases) {
            final int end = Math.min(rig.calls.size(), at + phase.size());
            phase.stream().sorted(ANY_ORDER).forEach(expected::add);
            rig.calls.subList(at, end).stream().sorted(ANY_ORDER).forEach(actual::add);
            at = end;
        }
        actual.addAll(rig.calls.subList(at, rig.calls.size()));
        assertEquals(expected, actual, () -> "calls of " + a);
    }

    private static void assertAnswers(final Rig rig, final Action a) {
        for (int t = 0; t <= History.TASKS; t++) {
            final int task = t;
            final Reference.Segment s = rig.reference.segmentOf(t);
            assertEquals(s == null ? "idle" : s.state, SegmentState.name(rig.scheduler.state(t)),
                () -> "state of task " + task + " after " + a);
            assertEquals(s == null ? 0 : s.ticket, rig.scheduler.ticket(t));
            assertEquals(s == null ? Long.MAX_VALUE : s.deadlineNs, rig.scheduler.deadlineNs(t));
            assertEquals(rig.reference.pregranted.contains(t), rig.scheduler.isPregranted(t),
                () -> "pre-grant of task " + task + " after " + a);
        }
        for (final int c : rig.reference.contexts.keySet()) {
            assertEquals(!rig.reference.off.contains(c), rig.scheduler.contextDesired(c),
                () -> "context " + c + " after " + a);
        }
        for (int gpu = 0; gpu < History.GPUS; gpu++) {
            final List<Reference.Segment> run = rig.reference.ranked(gpu).stream()
                .filter(s -> s.state.equals("running")).toList();
            assertEquals(run.isEmpty() ? SegmentScheduler.NONE : run.get(0).task, rig.scheduler.runningTask(gpu));
            assertEquals(rig.reference.ranked(gpu).size(), rig.scheduler.begunCount(gpu));
        }
        assertEquals(rig.reference.nextTimerNs(), rig.scheduler.nextTimerNs(), () -> "timer after " + a);
    }
}
