/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * GCAPS as published, threads suspend.
 *
 * <p>Hypotheses:
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T;</li>
 * <li>the GPU serves, at every instant, the device part with the highest GPU priority; an update costs epsilon;</li>
 * <li>a GPU is held only while a device part runs. <b>The published mechanism breaks this one</b>: it holds the GPU
 *     from begin to end, host part included, so the bound can be exceeded ({@code docs/window.md}, counterexample);
 *     {@link GcapsWindow} is the sound analysis;</li>
 * <li>local order agrees: of two tasks on one core, the one with the higher CPU priority has the higher GPU
 * priority.</li>
 * </ul>
 * Recurrence, eps = epsilon of the task's GPU: {@code R_i = C_i + G_i + 2 eps eta_i + (eta_i + 1) eps + B_i}
 * <pre>
 *  + sum_{h in hpp(i), eta_h = 0} ceil((R_i + Jr_h) / T_h) C_h
 *  + sum_{h in hpp(i), eta_h &gt; 0} ceil((R_i + Jc_h) / T_h) (C_h + Gm_h + 2 eps eta_h)        Jc_h = R_h - (C_h +
 *  Gm_h)
 *  + [eta_i &gt; 0] sum_{h in hpp(i), same GPU}  ceil((R_i + Jg_h) / T_h) Ge_h                   Jg_h = R_h - Ge_h
 *  + [eta_i &gt; 0] sum_{h remote, same GPU, higher GPU priority} ceil((R_i + Jg_h) / T_h) (Ge_h + 2 eps eta_h)
 * </pre>
 * Source: GCAPS (ECRTS 2024), Eq. 1, 9, 13, 14, sections 6.3 and 6.4. With separate GPU priorities D_h replaces R_h
 * in every jitter, as published. Added here: release jitter Jr, declared blocking B_i, several GPUs (tasks of
 * different GPUs meet on the CPU only).
 */
final class GcapsSuspend extends FixedPointAnalysis<Void> {
    GcapsSuspend(final AnalysisDescription description) {
        super(description);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Void work, final Recurrence out) {
        addOwn(s, i, out);
        final int cpu = s.cpu[i];
        final boolean usesGpu = s.eta[i] > 0;
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == cpu) {
                if (s.isCpuHigher(h, i)) {
                    if (s.eta[h] == 0) {
                        out.add(Recurrence.PREEMPTION, s.period[h], s.jitter[h], s.cpuWork[h]);
                    } else {
                        final long work0 = s.cpuWork[h] + s.host[h];
                        out.add(Recurrence.PREEMPTION, s.period[h], r[h] - work0, work0 + updates(s, h));
                        if (usesGpu && s.gpu[h] == s.gpu[i]) {
                            out.add(Recurrence.INTERFERENCE, s.period[h], r[h] - s.device[h], s.device[h]);
                        }
                    }
                }
            } else if (usesGpu && s.isGpuHigher(h, i)) {
                out.add(Recurrence.INTERFERENCE, s.period[h], r[h] - s.device[h], s.device[h] + updates(s, h));
            }
        }
    }

    /** C + G, two updates per segment, one blocking update at the start and per segment, declared blocking. */
    static void addOwn(final PreparedSet s, final int i, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.OVERHEAD, updates(s, i));
        out.addBase(Recurrence.BLOCKING, Math.addExact(s.blocking[i], Math.multiplyExact(s.eta[i] + 1L,
            s.epsilon[i])));
    }

    /** {@code 2 * epsilon * eta} of a task. */
    static long updates(final PreparedSet s, final int h) {
        return Math.multiplyExact(2L * s.eta[h], s.epsilon[h]);
    }
}
