/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;

/**
 * Boosted windows of threads that suspend, charged window by window: by fixed GPU priorities, or by deadlines of jobs
 * on the GPU; cores by fixed priority.
 *
 * <p>Hypotheses (theorem 11 of {@code docs/boost.md}): those of {@link GcapsBoost} for threads that suspend, or, by
 * deadline, of {@link EdfWindow} with cores by fixed priority and the boost. The boost may last from the completion of
 * the update, or from begin, to end.
 *
 * <p>Recurrence, eps = epsilon of the GPU: {@code w = C_i + G_i + 2 eps eta_i + B_i}
 * <pre>
 *  + sum_{h in hpp(i), eta_h = 0}          ceil((w + jc_h) / T_h) C_h
 *  + sum_{h in hpp(i), eta_h &gt; 0}          ceil((w + R_h - C_h - Gm_h) / T_h) (C_h + Gm_h)
 *  + sum_{h in hpp(i), ahead of i}         n_ih(w, R_h + 2 eps - Q_h) Q_h
 *  + sum_{h not in hpp(i), ahead of i}     n_ih(w, R_h + 2 eps - H_h) H_h  + stops of their windows
 *  + sum_{l local, lower CPU priority}     the eta_i + 1 largest host parts, each at most ceil((w + R_l) / T_l) times
 * </pre>
 * {@code n_ih(w, J) = min(ceil((w + J) / T_h), sum_j ceil((F_ij + J) / T_h), K_ih)}: windows of others matter only
 * while one of i is open. H_h = G_h + 2 eps eta_h, Q_h = device part + 2 eps eta_h; K_ih as in {@link EdfWindow}, no
 * limit under fixed priorities. The terms of a task of hpp(i) that is ahead may be replaced by one for all its time.
 * F_ij, the longest time from begin to end of window j, contains no CPU segment of any task. Every R depends on every
 * other: the iteration starts from R = D and goes on while a bound shrinks.
 *
 * <p>Source: this project; the count by requests is that of {@link GcapsSuspendCapped}, applied to whole windows.
 */
final class BoostedWindows extends FixedPointAnalysis<BoostCharges> {
    private static final int MAX_ROUNDS = 64;

    private final boolean byDeadline;
    private final Charges charges;

    /** Makes the terms of the recurrences. */
    interface Charges {
        /** For one set; the parameters are those of {@link BoostCharges}. */
        BoostCharges of(PreparedSet s, long[] r, boolean byDeadline, boolean searching);
    }

    BoostedWindows(final AnalysisDescription description) {
        this(description, BoostCharges::new);
    }

    /** With other terms, so that a test can leave one out. */
    BoostedWindows(final AnalysisDescription description, final Charges charges) {
        super(description);
        this.charges = charges;
        byDeadline = description.model().scheduler() == Scheduler.EDF;
    }

    @Override
    boolean coversStalls() {
        return true;
    }

    @Override
    boolean usesDeadlineJitter(final PreparedSet s) {
        return false;
    }

    @Override
    int rounds() {
        return MAX_ROUNDS;
    }

    @Override
    BoostCharges begin(final PreparedSet s, final long[] r) {
        return charges.of(s, r, byDeadline, false);
    }

    @Override
    BoostCharges beginSearch(final PreparedSet s, final long[] r) {
        return charges.of(s, r, byDeadline, true);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final BoostCharges work, final Recurrence out) {
        work.task(i, out);
    }
}
