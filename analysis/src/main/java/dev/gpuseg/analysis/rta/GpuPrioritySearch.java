/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.core.Priority;
import java.util.Arrays;

/**
 * Searches for GPU priorities that differ from the CPU priorities, from the lowest level up (Audsley), with deadlines
 * instead of unknown response times. CPU priorities do not change; two tasks of one core must have the same order on
 * both resources.
 *
 * <p>Thread-safe; no state.
 */
public final class GpuPrioritySearch {
    /** How the candidates of a level are chosen. */
    public enum Strategy {
        /**
         * As published (GCAPS, ECRTS 2024, sections 5.3 and 6.4): every unassigned task, from the lowest CPU priority
         * up; CPU-only tasks occupy levels too; an order that inverts a local pair is rejected at the end, without
         * backtracking.
         */
        PUBLISHED,
        /**
         * From each core only the unassigned task of lowest CPU priority. No inversion can arise. The test of a
         * candidate depends only on the set of unassigned tasks, and only improves when that set shrinks. So the search
         * finds an order whenever one exists that keeps local orders; it accepts at least what {@link #PUBLISHED}
         * accepts ({@code docs/priorities.md}).
         */
        FRONTIER
    }

    private GpuPrioritySearch() {
    }

    /**
     * Looks for GPU priorities under which an analysis accepts the set.
     *
     * @param set      with CPU priorities
     * @param analysis one of the {@code gcaps} analyses
     * @param strategy the order of candidates
     * @return level by index of the task in the set, 1 lowest, distinct, for real-time tasks (0 for best effort); or
     * null if the search finds none
     * @throws IllegalArgumentException if the analysis has no GPU priorities to search
     */
    public static int[] levels(final PreparedSet set, final Analysis analysis, final Strategy strategy) {
        if (!(analysis instanceof FixedPointAnalysis<?> given) || !given.description().model().hasGpuPriorities()) {
            throw new IllegalArgumentException("analysis '" + analysis.name()
                + "' has no GPU priorities to search; use one whose name begins with gcaps-");
        }
        final FixedPointAnalysis<?> test = strategy == Strategy.PUBLISHED ? given.forPublishedSearch() : given;
        try {
            return search(set, test, strategy);
        } catch (final ArithmeticException e) {
            throw new InvalidModelException("task set \"" + set.set.id() + "\": a sum of times exceeds 2^63 ns"
                + "; use shorter times or longer periods");
        }
    }

    /**
     * The verdict as the published experiments take it: first with one order for both resources, then with the search.
     *
     * @param set      with CPU priorities
     * @param analysis one of the {@code gcaps} analyses
     * @param strategy the order of candidates
     * @return true if either accepts the set
     */
    public static boolean isSchedulable(final PreparedSet set, final Analysis analysis, final Strategy strategy) {
        return analysis.isSchedulable(set) || levels(set, analysis, strategy) != null;
    }

    private static <W> int[] search(final PreparedSet set, final FixedPointAnalysis<W> test, final Strategy strategy) {
        final int n = set.realTimeCount;
        final int unassigned = n + 1;
        final int[] level = new int[set.count];
        Arrays.fill(level, 0, n, unassigned);
        final PreparedSet s = set.withGpuPriorities(level);
        final long[] r = s.deadline.clone();
        final W work = test.beginSearch(s, r);
        final Recurrence recurrence = new Recurrence(2 * s.count + 2);
        for (int next = 1; next <= n; next++) {
            boolean found = false;
            for (int i = n - 1; i >= 0 && !found; i--) {
                if (level[i] != unassigned || strategy == Strategy.FRONTIER && !isLowestOfItsCore(s, i, level,
                    unassigned)) {
                    continue;
                }
                level[i] = next;
                found = test.bound(s, i, r, work, recurrence) != Recurrence.EXCEEDED;
                if (!found) {
                    level[i] = unassigned;
                }
            }
            if (!found) {
                return null;
            }
        }
        if (invertsLocalPair(s, level)) {
            return null;
        }
        final int[] byIndex = new int[s.count];
        for (int p = 0; p < n; p++) {
            byIndex[s.index[p]] = level[p];
        }
        return byIndex;
    }

    private static boolean isLowestOfItsCore(final PreparedSet s, final int i, final int[] level,
        final int unassigned) {
        for (int k = i + 1; k < s.realTimeCount; k++) {
            if (s.cpu[k] == s.cpu[i] && level[k] == unassigned) {
                return false;
            }
        }
        return true;
    }

    private static boolean invertsLocalPair(final PreparedSet s, final int[] level) {
        for (int h = 0; h < s.realTimeCount; h++) {
            for (int i = h + 1; i < s.realTimeCount; i++) {
                if (s.cpu[h] == s.cpu[i] && Priority.isHigherThan(s.priority[h], s.priority[i])
                    && level[h] < level[i]) {
                    return true;
                }
            }
        }
        return false;
    }
}
