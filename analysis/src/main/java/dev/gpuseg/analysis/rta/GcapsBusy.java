/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.core.Priority;

/**
 * GCAPS as published, threads spin, with the local busy-wait charged to CPU-only tasks too.
 *
 * <p>Hypotheses: as {@link GcapsSuspend} (the window gap included), but a thread keeps its core from begin to end.
 *
 * <p>Recurrence: {@code R_i = C_i + G_i + 2 eps eta_i + (eta_i + 1) eps + B_i}
 * <pre>
 *  + sum_{h in hpp(i)} ceil((R_i + Jr_h) / T_h) (C_h + G_h + 2 eps eta_h)
 *  + sum_{h in X(i)}   ceil((R_i + Jg_h) / T_h) (Ge_h + 2 eps eta_h)                            Jg_h = R_h - Ge_h
 * </pre>
 * X(i) = GPU tasks on other cores that outrank i on its GPU, or some GPU task of hpp(i) on its own. For a CPU-only
 * task with one order for both resources, X(i) = every GPU task of higher priority on another core, as printed (Eq.
 * 11); that is more than necessary.
 *
 * <p>Source: GCAPS (ECRTS 2024), Eq. 9-12. <b>Corrected</b>: the printed Eq. 10 charges the spinning of local tasks
 * (Ge) only to tasks that use the GPU themselves. A CPU-only task below a spinning one is delayed as well: core 1 with
 * tau_1 (C=1, Ge=10, T=100) above tau_2 (C=5) gives 6 as printed, and the correct bound is 16. The published program
 * charges it. {@link GcapsBusyPrinted} keeps the printed form. Where Eq. 10 and 12 together write Gm_h + Ge_h, this
 * class uses G_h: the two agree unless host and device part overlap, and then a spinning thread occupies its core for
 * G_h ({@code docs/window.md}, lemma 1). The published program does the same.
 */
class GcapsBusy extends FixedPointAnalysis<SpinnerFloor> {
    private final boolean chargeSpinningToCpuOnly;
    private final boolean levelsOfCpuOnlyTasks;

    GcapsBusy(final AnalysisDescription description) {
        this(description, true, false);
    }

    GcapsBusy(final AnalysisDescription description, final boolean chargeSpinningToCpuOnly,
        final boolean levelsOfCpuOnlyTasks) {
        super(description);
        this.chargeSpinningToCpuOnly = chargeSpinningToCpuOnly;
        this.levelsOfCpuOnlyTasks = levelsOfCpuOnlyTasks;
    }

    /** There, CPU-only tasks have a level among the others, and Eq. 11 charges every remote GPU task above it. */
    @Override
    FixedPointAnalysis<?> forPublishedSearch() {
        return chargeSpinningToCpuOnly ? new GcapsBusy(description(), true, true) : this;
    }

    @Override
    SpinnerFloor begin(final PreparedSet s, final long[] r) {
        return new SpinnerFloor(s);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final SpinnerFloor floor, final Recurrence out) {
        GcapsSuspend.addOwn(s, i, out);
        final int cpu = s.cpu[i];
        final boolean usesGpu = s.eta[i] > 0;
        final boolean everyRemote = !usesGpu && !s.separateGpuPriorities;
        floor.moveTo(i);
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == cpu) {
                if (s.isCpuHigher(h, i)) {
                    final long updates = GcapsSuspend.updates(s, h);
                    if (usesGpu || chargeSpinningToCpuOnly) {
                        out.add(Recurrence.PREEMPTION, s.period[h], s.jitter[h],
                            Math.addExact(s.cpuWork[h] + s.gpuWork[h], updates), Math.addExact(s.device[h], updates),
                            Long.MAX_VALUE);
                    } else {
                        out.add(Recurrence.PREEMPTION, s.period[h], s.jitter[h], s.cpuWork[h] + s.host[h]);
                    }
                }
            } else if (s.eta[h] > 0
                && (everyRemote ? s.isCpuHigher(h, i) : isAboveByLevel(s, h, i) || floor.isDelayedBy(h))) {
                out.add(Recurrence.INTERFERENCE, s.period[h], r[h] - s.device[h],
                    Math.addExact(s.device[h], GcapsSuspend.updates(s, h)));
            }
        }
    }

    private boolean isAboveByLevel(final PreparedSet s, final int h, final int i) {
        return levelsOfCpuOnlyTasks && s.eta[i] == 0 ? !Priority.isHigherThan(s.gpuPriority[i], s.gpuPriority[h])
            : s.isGpuHigher(h, i);
    }
}
