/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.List;

/**
 * An error in one term of a theorem, for mutation tests: the recurrence of each task is solved without the term, or
 * with a part of it, and with the right bounds of all other tasks.
 */
public enum PlantedTerm {
    /** No error. */
    NONE,
    /** The task's own C + G. */
    OWN,
    /** The task's own updates, 2 eps eta. */
    OWN_UPDATES,
    /** Declared blocking. */
    DECLARED,
    /** What lower tasks keep from it: a boost's class 6; at a gate the blocker; the hold of lower windows. */
    LOWER,
    /** (a): CPU-only tasks of the core. */
    A,
    /** (a): their jitter. */
    A_JITTER,
    /** (b): tasks of the core and the GPU. */
    B,
    /** (b): their jitter. */
    B_JITTER,
    /** (b): their GPU part alone. */
    B_GPU,
    /** (c): tasks of the core that use another GPU, or the task uses none. */
    C,
    /** (c): their jitter. */
    C_JITTER,
    /** (d): windows of other cores. */
    D,
    /** (d): their jitter. */
    D_JITTER,
    /** (e): stops of those windows, and of lower windows of a process. */
    E,
    /** EDF: one job fewer of each task whose number of jobs deadlines limit. */
    DEADLINES,
    /** Partitions: the time in which the partition is closed. */
    TABLE;

    /**
     * What an analysis says of a set without the term.
     *
     * @param analysis a fixed-point analysis, or time partitions around one
     * @param set      the set
     * @return the right result with wrong bounds; the right one where the set is not schedulable
     */
    public AnalysisResult analyse(final Analysis analysis, final TaskSet set) {
        final AnalysisResult whole = analysis.analyse(set);
        if (!whole.schedulable()) {
            return whole;
        }
        final PreparedSet s = analysis.needsPriorities() ? PreparedSet.of(set) : PreparedSet.withoutPriorities(set);
        if (analysis instanceof TimePartitioned partitioned) {
            return weaken(partitioned.inside, partitioned.partitioned(s), whole);
        }
        return weaken((FixedPointAnalysis<?>) analysis, s, whole);
    }

    private <W> AnalysisResult weaken(final FixedPointAnalysis<W> analysis, final PreparedSet s,
        final AnalysisResult whole) {
        final long[] r = s.deadline.clone();
        final W work = analysis.begin(s, r);
        for (int p = 0; p < s.realTimeCount && !analysis.usesDeadlineJitter(s); p++) {
            r[p] = whole.tasks().get(s.index[p]).wcrtNs();
        }
        final Recurrence right = new Recurrence(2 * s.count + 2);
        for (int p = 0; p < s.realTimeCount; p++) {
            analysis.bound(s, p, r, work, right);   // lengths of windows, of those analyses that keep them
            analysis.settled(s, p, r, work);
        }
        final List<TaskResult> tasks = new ArrayList<>(whole.tasks());
        for (int p = 0; p < s.realTimeCount; p++) {
            final long bound = analysis.bound(s, p, r, work, new Without(s));
            if (bound != Recurrence.EXCEEDED) {
                final TaskResult same = whole.tasks().get(s.index[p]);
                tasks.set(s.index[p], new TaskResult(same.name(), Math.min(bound, same.wcrtNs()), same.deadlineNs(),
                    true, same.terms()));
            }
        }
        return new AnalysisResult(whole.analysis(), whole.taskSetId(), true, tasks);
    }

    /** A recurrence that leaves the term out. */
    private final class Without extends Recurrence {
        private final PreparedSet s;
        /** Every recurrence adds the declared blocking first. */
        private boolean declared;

        Without(final PreparedSet s) {
            super(2 * s.count + 2);
            this.s = s;
        }

        private boolean isCpuOnly(final long sourcePeriod, final long sourceCost) {
            for (int c = 0; c < s.realTimeCount; c++) {
                if (s.gpu[c] < 0 && s.period[c] == sourcePeriod && s.cpuWork[c] == sourceCost) {
                    return true;
                }
            }
            return false;
        }

        private PlantedTerm termOf(final int kind, final long sourcePeriod, final long sourceCost,
            final long gpuPart) {
            if (kind == INTERFERENCE) {
                return D;
            }
            return gpuPart > 0 ? B : isCpuOnly(sourcePeriod, sourceCost) ? A : C;
        }

        @Override
        int add(final int kind, final long sourcePeriod, final long sourceJitter, final long sourceCost,
            final long gpuPart, final long maximum) {
            final PlantedTerm term = termOf(kind, sourcePeriod, sourceCost, gpuPart);
            final boolean whole = PlantedTerm.this == term;
            final boolean late = PlantedTerm.this == A_JITTER && term == A || PlantedTerm.this == B_JITTER && term == B
                || PlantedTerm.this == C_JITTER && term == C || PlantedTerm.this == D_JITTER && term == D;
            final boolean half = PlantedTerm.this == B_GPU && term == B;
            final boolean fewer = PlantedTerm.this == DEADLINES && maximum != Long.MAX_VALUE;
            return super.add(kind, sourcePeriod, late ? 0 : sourceJitter, whole ? 0 : half ? sourceCost - gpuPart
                : sourceCost, whole || half ? 0 : gpuPart, fewer ? Math.max(0, maximum - 1) : maximum);
        }

        @Override
        void reset() {
            super.reset();
            declared = false;
        }

        @Override
        void addBase(final int kind, final long ns) {
            final boolean forgets = kind == OWN && PlantedTerm.this == PlantedTerm.OWN
                || kind == OVERHEAD && PlantedTerm.this == OWN_UPDATES
                || kind == BLOCKING && PlantedTerm.this == (declared ? LOWER : DECLARED);
            declared |= kind == BLOCKING;
            super.addBase(kind, forgets ? 0 : ns);
        }

        @Override
        void setExtra(final Extra newExtra, final int newKind) {
            if (PlantedTerm.this != E) {
                super.setExtra(newExtra, newKind);
            }
        }

        @Override
        void setStretch(final Stretch newStretch) {
            super.setStretch(PlantedTerm.this == TABLE ? null : newStretch);
        }
    }

    /**
     * Whether the error changes something.
     *
     * @param right the right result
     * @param wrong that of {@link #analyse}
     * @return true if a bound is lower
     */
    public static boolean isLower(final AnalysisResult right, final AnalysisResult wrong) {
        for (int i = 0; i < right.tasks().size(); i++) {
            final Long a = right.tasks().get(i).wcrtNs();
            if (a != null && wrong.tasks().get(i).wcrtNs() < a) {
                return true;
            }
        }
        return false;
    }
}
