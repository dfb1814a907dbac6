/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * The default driver: contexts take turns on the GPU, threads spin meanwhile.
 *
 * <p>Hypotheses: as {@link TsgRrSuspend}, but a thread keeps its core while its device part runs.
 *
 * <p>Recurrence: {@code R_i = C_i + G_i + B_i + sum_j I(nu_i, Ge_ij) + sum_{h in hpp(i)} ceil((R_i + Jr_h) / T_h)
 * (C_h + Gm_h + sum_j I(nu_hi, Ge_hj))} with {@code I(nu, x) = (L + theta) * nu * ceil(x / L)}, nu_i = number of
 * other tasks on the GPU of i, nu_hi = 1 + number of tasks outside hpp(i) on the GPU of h, Jr_h = release jitter.
 *
 * <p>Source: GCAPS (ECRTS 2024), Eq. 3, 5, 6 and 7, as printed: i itself is among the tasks that take turns with h
 * (safe, perhaps pessimistic). The published program differs in four ways and is unsound: it never charges CPU-only
 * local tasks, builds the set of turn-takers from wrong indices, and counts Gm_h twice but h's own slices not. Added
 * here: release jitter, declared blocking B_i, several GPUs.
 */
final class TsgRrBusy extends FixedPointAnalysis<Void> {
    TsgRrBusy(final AnalysisDescription description) {
        super(description);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Void work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        out.addBase(Recurrence.INTERLEAVING, TsgRrSuspend.interleaving(s, i, TsgRrSuspend.othersOnGpu(s, i)));
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] != s.cpu[i] || !s.isCpuHigher(h, i)) {
                continue;
            }
            out.add(Recurrence.PREEMPTION, s.period[h], s.jitter[h], s.cpuWork[h] + s.host[h]);
            if (s.eta[h] > 0) {
                long turns = 1;
                for (int k = 0; k < s.count; k++) {
                    final boolean localHigher = s.cpu[k] == s.cpu[i] && s.isCpuHigher(k, i);
                    if (s.gpu[k] == s.gpu[h] && !localHigher) {
                        turns++;
                    }
                }
                out.add(Recurrence.INTERLEAVING, s.period[h], s.jitter[h], TsgRrSuspend.interleaving(s, h, turns));
            }
        }
    }
}
