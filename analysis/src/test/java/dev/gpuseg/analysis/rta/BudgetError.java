/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;

/** Errors in single terms of the least budget, for mutation tests. */
public enum BudgetError {
    /** Without the window itself. */
    OWN,
    /** Without the two updates after a begin that does not wait. */
    BEGIN,
    /** One of them only. */
    ONE_UPDATE,
    /** Without updates that windows leave behind which end before they have the GPU. */
    LOST,
    /** As if a budget left out every update that it waits for. */
    BEYOND,
    /** Without the switch at a gate. */
    SWITCH,
    /** Without stops of the GPU. */
    STOPS,
    /** Without tasks above on the core. */
    ABOVE,
    /** Their CPU segments only, without the host parts of windows of other GPUs. */
    HOST_ABOVE,
    /** Nothing is carried in from a job that arrived before. */
    CARRIED,
    /** A task of equal priority has no window open while the task has the GPU. */
    TIED,
    /** All pieces of a window are one interval. */
    PIECES;

    /**
     * Least budgets with the error.
     *
     * @param set        as declared
     * @param bounds     of the set
     * @param model      the schedule that they describe
     * @param optimistic whether begins return at once where nothing could outrank the task
     * @param boosted    whether windows run at boosts
     * @return the budgets
     */
    public LeastBudgets of(final TaskSet set, final AnalysisResult bounds, final Model model, final boolean optimistic,
        final boolean boosted) {
        return new Wrong(set, bounds, model, optimistic, boosted);
    }

    private final class Wrong extends LeastBudgets {
        Wrong(final TaskSet set, final AnalysisResult bounds, final Model model, final boolean optimistic,
            final boolean boosted) {
            super(set, bounds, model, optimistic, boosted);
        }

        private long unless(final BudgetError error, final long ns) {
            return BudgetError.this == error ? 0 : ns;
        }

        @Override
        long ownNs(final long windowNs) {
            return unless(OWN, super.ownNs(windowNs));
        }

        @Override
        long beginNs(final long ns) {
            return unless(BEGIN, BudgetError.this == ONE_UPDATE ? super.beginNs(ns) / 2 : super.beginNs(ns));
        }

        @Override
        long lostNs(final long ns) {
            return unless(LOST, super.lostNs(ns));
        }

        @Override
        long beyondNs(final long ns) {
            return unless(BEYOND, super.beyondNs(ns));
        }

        @Override
        long switchNs(final Gpu gpu) {
            return unless(SWITCH, super.switchNs(gpu));
        }

        @Override
        long stopsNs(final Gpu gpu, final long spanNs) {
            return unless(STOPS, super.stopsNs(gpu, spanNs));
        }

        @Override
        boolean isClosed(final Task above, final Task task) {
            return BudgetError.this == TIED || super.isClosed(above, task);
        }

        @Override
        long chargedNs(final Task above, final long costNs) {
            final long charged = unless(ABOVE, super.chargedNs(above, costNs));
            return BudgetError.this == HOST_ABOVE ? Math.min(charged, above.cpuNs()) : charged;
        }

        @Override
        long carriedNs(final long ns) {
            return unless(CARRIED, super.carriedNs(ns));
        }

        @Override
        boolean isInPieces(final boolean outranked) {
            return BudgetError.this != PIECES && super.isInPieces(outranked);
        }
    }
}
