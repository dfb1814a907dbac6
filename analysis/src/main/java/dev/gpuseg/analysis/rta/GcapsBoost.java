/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;

/**
 * Exclusive windows whose holder runs above every unboosted task of its core: only a window of higher priority stops a
 * window.
 *
 * <p>Hypotheses (theorem 2 of {@code docs/window.md}): those of {@link GcapsWindow}, and
 * <ul>
 * <li>from the completion of the update that gives it the GPU until it ends or loses the GPU, a thread runs above all
 *     unboosted threads of its core; boosted threads of one core (holders of different GPUs) run by CPU priority;</li>
 * <li>best-effort tasks are never boosted.</li>
 * </ul>
 * All tasks with windows are boosted. Where threads suspend, the bound also holds if the boost lasts from begin to end,
 * as that of libgpuseg does (theorem 2'); where they spin it does not, so that the bound for them is not sound for
 * this scheduler.
 *
 * <p>Recurrence: that of {@link GcapsWindow} with k_hc = 0 for CPU-only tasks and those of the same GPU (of
 * another GPU: the boosted part of c alone, Y_c = Gm_c + 2 eps eta_c, busy G_c + 2 eps eta_c), and with the blocking
 * <pre>
 *  sum_{l local, lower CPU priority, eta_l &gt; 0} (the eta_i + 1 largest X_lk, each at most ceil((D_i + D_l) / T_l)
 *  times)
 * </pre>
 * X = Gm (suspend: a boosted thread sleeps during its device part) or G (busy). Each of the eta_i + 1 stretches of i
 * on its core can meet one open window of each lower local task: opening another one takes the core at its own
 * priority. If B_i &gt; 0, in place of eta_i + 1 all windows count, because i can wait for its blocking several times.
 *
 * <p>Source: this project; the boost is that of MPCP (Rajkumar 1990), applied to windows.
 */
final class GcapsBoost extends ExclusiveWindow {
    GcapsBoost(final AnalysisDescription description) {
        super(description, true);
    }

    /** Longest time that boosted parts of the lower local task l keep i from its core, per job of i. */
    static long blocking(final PreparedSet s, final int i, final int l, final boolean busy) {
        final long copies = IntegerMath.ceilDiv(s.deadline[i] + s.deadline[l], s.period[l]);
        return largest(busy ? s.segmentTotal : s.segmentHost, s.segmentStart[l], s.segmentStart[l + 1],
            stretches(s, i), copies);
    }

    /**
     * Most stretches without open window in which a job of i can find the core taken by one boosted window of a lower
     * task. A task with a declared blocking can wait for it any number of times, and a lower one can begin a window
     * each time.
     */
    static long stretches(final PreparedSet s, final int i) {
        return s.blocking[i] > 0 ? Long.MAX_VALUE : s.eta[i] + 1L;
    }

    /** Sum of the {@code slots} largest values of a range, each usable {@code copies} times. */
    static long largest(final long[] values, final int from, final int to, final long slots, final long copies) {
        long left = slots;
        long sum = 0;
        long below = Long.MAX_VALUE;
        while (left > 0) {
            long best = -1;
            long equal = 0;
            for (int k = from; k < to; k++) {
                if (values[k] < below && values[k] >= best) {
                    equal = values[k] == best ? equal + 1 : 1;
                    best = values[k];
                }
            }
            if (best <= 0) {
                return sum;
            }
            final long taken = equal >= left || copies >= left ? left : Math.min(left, equal * copies);
            sum = Math.addExact(sum, Math.multiplyExact(taken, best));
            left -= taken;
            below = best;
        }
        return sum;
    }
}
