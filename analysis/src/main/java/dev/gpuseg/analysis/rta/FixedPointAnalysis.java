/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.InvalidModelException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * The loop that the fixed-priority analyses share: tasks from highest to lowest CPU priority, one {@link Recurrence}
 * each.
 *
 * <p>Where a recurrence needs the response time of a task that is not analysed yet (equal priorities), that failed, or
 * whose GPU priority differs from its CPU priority, it takes the deadline instead, which is a bound if the set passes.
 *
 * @param <W> state of a subclass during the analysis of one set
 */
abstract class FixedPointAnalysis<W> implements Analysis {
    private final AnalysisDescription description;

    FixedPointAnalysis(final AnalysisDescription description) {
        this.description = description;
    }

    @Override
    public final AnalysisDescription description() {
        return description;
    }

    /** The form of this analysis that the published search for GPU priorities uses. */
    FixedPointAnalysis<?> forPublishedSearch() {
        return this;
    }

    /**
     * The state for the analysis of one set; null if there is none.
     *
     * @param s the set
     * @param r response-time bounds by position, deadlines where not known
     */
    W begin(final PreparedSet s, final long[] r) {
        return null;
    }

    /**
     * As {@link #begin}, but the state must not depend on the GPU priorities: a search changes them between two bounds.
     */
    W beginSearch(final PreparedSet s, final long[] r) {
        return begin(s, r);
    }

    /** Fills base, sources and extra for the task at position i. The own jitter is added by the caller. */
    abstract void build(PreparedSet s, int i, long[] r, W work, Recurrence out);

    /** Whether the recurrence contains the stops of the GPU that others cause ({@code docs/stalls.md}). */
    boolean coversStalls() {
        return false;
    }

    /** Called when r[i] is final. */
    void settled(final PreparedSet s, final int i, final long[] r, final W work) {
    }

    /**
     * How often all tasks are computed while bounds shrink. More than once where any task can delay any other: a vector
     * of bounds that the recurrences map to a vector no larger is proven (no job can be the first to exceed its bound),
     * whatever the vector was derived from.
     */
    int rounds() {
        return 1;
    }

    /** True if every jitter is computed from the deadline. */
    boolean usesDeadlineJitter(final PreparedSet s) {
        return s.separateGpuPriorities;
    }

    @Override
    public AnalysisResult analyse(final PreparedSet s) {
        final TaskResult[] results = new TaskResult[s.count];
        final boolean schedulable = run(s, results);
        final List<TaskResult> ordered = new ArrayList<>(s.count);
        Collections.addAll(ordered, results);
        return new AnalysisResult(name(), s.set.id(), schedulable, ordered);
    }

    @Override
    public boolean isSchedulable(final PreparedSet s) {
        return run(s, null);
    }

    private boolean run(final PreparedSet s, final TaskResult[] results) {
        try {
            return iterate(s, results);
        } catch (final ArithmeticException e) {
            throw new InvalidModelException("task set \"" + s.set.id() + "\": a sum of times exceeds 2^63 ns"
                + "; use shorter times or longer periods");
        }
    }

    private boolean iterate(final PreparedSet s, final TaskResult[] results) {
        description.model().requireHypotheses(s, mode());
        final long[] r = s.deadline.clone();
        final W work = begin(s, r);
        final Recurrence recurrence = new Recurrence(2 * s.count + 2);
        final boolean keepDeadlines = usesDeadlineJitter(s);
        final int rounds = rounds();
        boolean schedulable = false;
        boolean shrunk = true;
        for (int round = 0; round < rounds && shrunk && (results != null || !schedulable); round++) {
            schedulable = true;
            shrunk = false;
            for (int i = 0; i < s.realTimeCount; i++) {
                final long bound = bound(s, i, r, work, recurrence);
                if (bound == Recurrence.EXCEEDED) {
                    schedulable = false;
                    if (results == null && rounds == 1) {
                        return false;
                    }
                } else if (!keepDeadlines && bound < r[i]) {
                    r[i] = bound;
                    shrunk = true;
                }
                settled(s, i, r, work);
                if (results != null) {
                    results[s.index[i]] = result(s, i, bound, recurrence);
                }
            }
        }
        if (results != null) {
            for (int i = s.realTimeCount; i < s.count; i++) {
                results[s.index[i]] = new TaskResult(s.set.tasks().get(s.index[i]).name(), null, s.deadline[i], true,
                    null);
            }
        }
        return schedulable;
    }

    /** Response-time bound of the task at position i, or {@link Recurrence#EXCEEDED}. */
    final long bound(final PreparedSet s, final int i, final long[] r, final W work, final Recurrence recurrence) {
        if (s.stalls && !coversStalls()) {
            throw new InvalidModelException("platform: something else stops a GPU (stall, or foreign of amd), which "
                + name() + " does not contain; use gcaps-window-" + mode().word() + ", or another of docs/stalls.md");
        }
        recurrence.reset();
        try {
            build(s, i, r, work, recurrence);
        } catch (final ArithmeticException e) {
            // A sum above 2^63 ns lies above every deadline (at most 2^53 ns).
            return Recurrence.EXCEEDED;
        }
        recurrence.setStretch(s.supplyOf(i));
        final long w = recurrence.solve(s.deadline[i] - s.jitter[i]);
        if (w == Recurrence.EXCEEDED) {
            return w;
        }
        recurrence.addBase(Recurrence.JITTER, s.jitter[i]);
        return w + s.jitter[i];
    }

    static TaskResult result(final PreparedSet s, final int i, final long bound, final Recurrence recurrence) {
        final boolean passed = bound != Recurrence.EXCEEDED;
        return new TaskResult(s.set.tasks().get(s.index[i]).name(), passed ? bound : null, s.deadline[i], passed,
            passed ? recurrence.terms() : null, passed ? null : recurrence.passedTerms(s.jitter[i]));
    }
}
