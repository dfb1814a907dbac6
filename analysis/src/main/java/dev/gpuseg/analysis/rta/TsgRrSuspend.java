/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;

/**
 * The default driver: contexts take turns on the GPU, threads sleep meanwhile.
 *
 * <p>Hypotheses:
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T;</li>
 * <li>the hardware serves all contexts with work in turn, time slice L, switch cost theta; real-time and best-effort
 *     tasks alike; one context per task;</li>
 * <li>threads suspend while the device part runs.</li>
 * </ul>
 * Recurrence: {@code R_i = C_i + G_i + B_i + sum_j (L + theta) * nu_i * ceil(Ge_ij / L) + sum_{h in hpp(i)}
 * ceil((R_i + J_h) / T_h) (C_h + Gm_h)}, nu_i = number of other tasks on the GPU of i (best effort included), {@code
 * J_h = R_h - (C_h + Gm_h)}.
 *
 * <p>Source: GCAPS (ECRTS 2024), Eq. 3, 5 and 8, as printed. The published program takes T_h for R_h in J_h; that is
 * sound but loses sets. Added here: release jitter (contained in R_h), declared blocking B_i, several GPUs (turns
 * are taken per GPU).
 *
 * <p>Eq. 5 charges a switch for each slice of the others but not the switch back to the own slice: with theta &gt; 0
 * the printed bound can be exceeded.
 */
final class TsgRrSuspend extends FixedPointAnalysis<Void> {
    TsgRrSuspend(final AnalysisDescription description) {
        super(description);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Void work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        out.addBase(Recurrence.INTERLEAVING, interleaving(s, i, othersOnGpu(s, i)));
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == s.cpu[i] && s.isCpuHigher(h, i)) {
                final long cost = s.cpuWork[h] + s.host[h];
                out.add(Recurrence.PREEMPTION, s.period[h], r[h] - cost, cost);
            }
        }
    }

    /** Number of tasks other than i that use its GPU. */
    static int othersOnGpu(final PreparedSet s, final int i) {
        int others = 0;
        for (int k = 0; k < s.count; k++) {
            if (k != i && s.gpu[k] >= 0 && s.gpu[k] == s.gpu[i]) {
                others++;
            }
        }
        return others;
    }

    /** Sum over the segments of task h of {@code (L + theta) * turns * ceil(Ge / L)}. */
    static long interleaving(final PreparedSet s, final int h, final long turns) {
        long slices = 0;
        for (int j = s.segmentStart[h]; j < s.segmentStart[h + 1]; j++) {
            slices = Math.addExact(slices, IntegerMath.ceilDiv(s.segmentDevice[j], s.timeslice[h]));
        }
        return Math.multiplyExact(Math.multiplyExact(slices, turns), s.timeslice[h] + s.theta[h]);
    }
}
