/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Which of two bounds runs a set whose platform states turns: begins that wait for no driver call where these bounds
 * hold, since they measure better, else begins that are enforced by driver calls. Every report prints the same.
 *
 * @param calls      the bounds by calls
 * @param turns      the bounds by turns
 * @param takesTurns whether those by turns hold
 * @param lines      what was chosen and why, what each wait costs, which slice would help; each without a full stop
 */
public record TurnChoice(AnalysisResult calls, AnalysisResult turns, boolean takesTurns, List<String> lines) {
    /** Slices of best effort that are tried, the longest first. */
    private static final long[] SLICES_NS = {20_000_000, 10_000_000, 5_000_000, 2_000_000, 1_000_000, 500_000, 250_000,
        100_000, 50_000};

    /** Copies the list. */
    public TurnChoice {
        lines = List.copyOf(lines);
    }

    /**
     * Chooses.
     *
     * @param set every real-time task with a core and priorities
     * @return empty if the platform states no turns, or threads spin, or something else stops a GPU, or bounds by
     *         turns would mean nothing for this set ({@link Hypotheses#conflict})
     */
    public static Optional<TurnChoice> of(final TaskSet set) {
        if (set.platform().limits().turns() == null || set.mode() != WaitMode.SUSPEND
            || set.platform().gpus().stream().anyMatch(gpu -> gpu.stallNs() > 0)) {
            return Optional.empty();
        }
        final Analysis byCalls = Analyses.recommended(set.mode());
        final Analysis byTurns = Analyses.byTurns();
        if (!Hypotheses.conflict(byTurns.description(), set).isEmpty()) {
            return Optional.empty();
        }
        final AnalysisResult calls = byCalls.analyse(set);
        final AnalysisResult turns = byTurns.analyse(set);
        final Soundness sound = Soundness.of(byTurns.description(), set);
        final boolean together = set.platform().limits().turns().together();
        final boolean better = sound.verdict() != Soundness.Verdict.NOT_SOUND && turns.schedulable();
        final List<String> lines = new ArrayList<>();
        lines.add("turns: begins that wait for no driver call (" + byTurns.name() + ") "
            + (turns.schedulable() ? "keep every deadline" : "can miss a deadline") + ", begins with calls ("
            + byCalls.name() + ") " + (calls.schedulable() ? "keep every deadline" : "can miss a deadline")
            + "; the bounds are those of " + (better ? byTurns.name() : byCalls.name())
            + ", by which --admission enforce runs the set" + (better ? together ? " under policy classes" : ""
            : together ? " under policy fp, without turns" : ", without turns"));
        if (sound.verdict() == Soundness.Verdict.NOT_SOUND) {
            lines.add("turns: " + byTurns.name() + " is " + sound.text());
        }
        addWaits(set, turns, lines);
        lines.add("turns: " + longestSlice(set, byTurns));
        return Optional.of(new TurnChoice(calls, turns, better, lines));
    }

    /** The analysis whose bounds run. */
    public Analysis analysis() {
        return Analyses.get((takesTurns ? turns : calls).analysis());
    }

    private static void addWaits(final TaskSet set, final AnalysisResult turns, final List<String> lines) {
        final PreparedSet s = PreparedSet.of(set);
        final TurnsSuspend.Work work = ((TurnsSuspend) Analyses.byTurns()).begin(s, s.deadline.clone());
        for (int p = 0; p < s.realTimeCount; p++) {
            final TaskResult task = turns.tasks().get(s.index[p]);
            final Terms terms = task.terms() != null ? task.terms() : task.passed();
            if (work.waits[p] == 0 || terms == null) {
                continue;
            }
            final long callsNs = Math.multiplyExact((long) s.eta[p], work.calls(p));
            final boolean measured = s.limits.turns().isMeasured();
            lines.add("turns: task \"" + task.name() + "\" waits at most " + work.waits[p] + (work.waits[p] == 1
                ? " time" : " times") + " a job, with a slice of " + Durations.format(work.slice[p])
                + (measured ? ": measured waits " + ms(terms.interleavingNs()) + " ms, other real-time contexts "
                + ms(terms.interferenceNs()) + " ms, calls for others " + ms(terms.overheadNs()) + " ms"
                : ": best effort and new contexts " + ms(terms.interleavingNs()) + " ms, other real-time contexts and "
                + "one turn more " + ms(terms.interferenceNs()) + " ms, own switches "
                + ms(terms.overheadNs() - callsNs) + " ms, calls for others " + ms(callsNs) + " ms")
                + (task.schedulable() ? "" : ", when it passed the deadline"));
        }
    }

    private static String longestSlice(final TaskSet set, final Analysis byTurns) {
        final TurnLimits stated = set.platform().limits().turns();
        if (stated.isMeasured()) {
            return "the wait of " + Durations.format(stated.waitNs()) + " was measured with slices of "
                + Durations.format(stated.sliceNs()) + "; calibrate measures other slices";
        }
        final int contexts = stated.contexts();
        for (final long ns : SLICES_NS) {
            final TaskSet tried = set.withPlatform(set.platform().withLimits(set.platform().limits()
                .withTurns(stated.with(ns, contexts))));
            if (byTurns.analyse(tried).schedulable()) {
                return byTurns.name() + " accepts the set with slices of best effort up to " + Durations.format(ns)
                    + (ns == SLICES_NS[0] ? " and more" : "");
            }
        }
        return "no slice of best effort makes " + byTurns.name() + " accept the set; fewer bursts, fewer contexts or "
            + "longer deadlines would";
    }

    private static String ms(final long ns) {
        return Durations.milliseconds(ns);
    }
}
