/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.domains.Domain;

/** The scheduler against the plain reference: same answers, same calls in the same phases. */
@Domain(Histories.class)
class ReferenceProperties {
    private static final List<String> SITUATIONS = List.of("MISS", "OVERRUN", "DISABLE", "ENABLE", "PREEMPT", "RESUME",
        "GRANT", "PREGRANT", "inheritance", "inheritance against another context", "gate shut",
        "begun ahead and preemption", "kept ready");
    private static final Comparator<Call> ANY_ORDER = Comparator.comparing(Call::kind).thenComparingInt(Call::id);

    @Property(tries = 4000)
    void shouldDecideAsTheReferenceDoes(@ForAll final History h) {
        final Rig rig = new Rig(h);
        for (final Action a : h.actions()) {
            rig.apply(a);
            assertEquals(rig.expectedOutcome, rig.outcome, () -> "outcome of " + a);
            assertPhases(rig, a);
            assertAnswers(rig, a);
        }
    }

    @Property(tries = 4000)
    @Domain(WideHistories.class)
    @Tag("long")
    void shouldDecideAsTheReferenceDoesWithPartitionsClassesAndOverruns(@ForAll final History h) {
        shouldDecideAsTheReferenceDoes(h);
    }

    // Without this, a change of the generator could quietly make the property vacuous.
    @Example
    void shouldMeetEverySituationOften() {
        final int samples = 500;
        final Map<String, Integer> met = new TreeMap<>();
        new Histories().histories().sampleStream().limit(samples).forEach(h -> {
            final Rig rig = new Rig(h);
            final Set<String> seen = new HashSet<>();
            for (final Action a : h.actions()) {
                rig.apply(a);
                collect(rig, seen);
            }
            seen.forEach(situation -> met.merge(situation, 1, Integer::sum));
        });
        for (final String situation : SITUATIONS) {
            assertTrue(met.getOrDefault(situation, 0) > samples / 100, situation + " in too few histories: " + met);
        }
    }

    private static void collect(final Rig rig, final Set<String> seen) {
        rig.calls.forEach(c -> seen.add(c.kind().name()));
        rig.reference.contexts.forEach((c, context) -> {
            if (rig.reference.preemptive && rig.reference.exclusive(context.gpu()) && rig.mayBeReady(c)
                && rig.scheduler.contextDesired(c)) {
                seen.add("kept ready");
            }
        });
        for (int gpu = 0; gpu < History.GPUS; gpu++) {
            final List<Reference.Segment> ranked = rig.reference.ranked(gpu);
            if (ranked.isEmpty() || rig.reference.policy.equals("rr")) {
                continue;
            }
            final Reference.Segment best = ranked.get(0);
            final boolean bestWaits = best.state.equals("waiting");
            if (bestWaits && rig.reference.preemptive) {
                seen.add("inheritance");
                final int context = rig.reference.contextOf(best);
                if (ranked.stream().anyMatch(s -> rig.reference.contextOf(s) != context && s.granted)) {
                    seen.add("inheritance against another context");
                }
            }
            if (bestWaits && !rig.reference.preemptive) {
                seen.add("gate shut");
            }
            if (rig.begunAhead && rig.calls.stream().anyMatch(c -> c.kind() == Call.Kind.PREEMPT)) {
                seen.add("begun ahead and preemption");
            }
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
