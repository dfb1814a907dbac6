/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;

/**
 * Exclusive windows by earliest absolute deadline on the GPU; cores by fixed priority or by deadline.
 *
 * <p>Hypotheses (theorem 4 of {@code docs/edf.md}): those of {@link GcapsWindow} with "highest GPU priority" read as
 * "earliest absolute deadline of the job" (ties count against the task), and
 * <ul>
 * <li>jobs mark their release, so that the deadline of a window is that of its job;</li>
 * <li>{@code edf-fp}: threads suspend. (With spinning threads a fixed-priority core can spin for a GPU whose holder it
 *     starves: there is no {@code edf-fp-busy}.)</li>
 * </ul>
 * Recurrence: that of {@link GcapsWindow}, {@code edf-edf} with all tasks of a core as if of equal priority, and for
 * every task h whose jobs matter only with an earlier deadline, the number of jobs limited to {@code max(0, ceil((D_i
 * - D_h + R_h + 2 eps) / T_h))}, those with a deadline at most that of the job of i that are not complete before its
 * arrival. Every R
 * depends on every other: the iteration starts from R = D and goes on while a bound shrinks; the set is accepted
 * when no recurrence exceeds its R. Under {@code edf-fp} the CPU part of local tasks of higher CPU priority is not
 * limited, and the windows of every other task of the GPU are charged, local or not.
 *
 * <p>Source: this project. Counting the jobs by deadline and by window is the workload bound of Bertogna and Cirinei
 * (RTSS 2007) on one resource; the deadline as a bound of responses not yet proven is the argument by the first
 * miss.
 */
final class EdfWindow extends FixedPointAnalysis<Windows> {
    private static final int MAX_ROUNDS = 64;

    private final Windows.Order order;
    private final boolean busy;

    EdfWindow(final AnalysisDescription description) {
        super(description);
        order = description.model().cores() == CpuPolicy.EDF ? Windows.Order.EDF : Windows.Order.EDF_GPU;
        busy = description.mode() == WaitMode.BUSY;
        if (busy && order == Windows.Order.EDF_GPU) {
            throw new IllegalArgumentException("EDF on the GPU with spinning fixed-priority threads can deadlock");
        }
    }

    @Override
    boolean coversStalls() {
        return true;
    }

    @Override
    public boolean needsPriorities() {
        return order != Windows.Order.EDF;
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
    void settled(final PreparedSet s, final int i, final long[] r, final Windows windows) {
        windows.refine(i);
    }

    @Override
    Windows begin(final PreparedSet s, final long[] r) {
        final Windows windows = new Windows(s, r, order, busy, false, false);
        for (int h = 0; h < s.realTimeCount; h++) {
            windows.refine(h);
        }
        return windows;
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Windows windows, final Recurrence out) {
        windows.addOwn(i, out);
        windows.addStalls(i, out);
        windows.start(i);
        windows.addProcesses(out);
        for (int h = 0; h < s.realTimeCount; h++) {
            if (h == i) {
                continue;
            }
            final boolean local = s.cpu[h] == s.cpu[i];
            if (local && windows.isCpuHigher(h, i)) {
                windows.addLocal(i, h, false, out);
            }
            final boolean onCore = local && order == Windows.Order.EDF;
            if (!onCore && (windows.isGpuHigher(h, i) || busy && delaysSpinner(s, h, i))) {
                windows.addWindows(i, h, out);
            }
        }
        windows.finish(out);
    }

    /** True if some task beside i, on its core, may spin for the GPU of h. */
    private static boolean delaysSpinner(final PreparedSet s, final int h, final int i) {
        if (s.gpu[h] < 0) {
            return false;
        }
        for (int l = 0; l < s.realTimeCount; l++) {
            if (l != i && l != h && s.cpu[l] == s.cpu[i] && s.gpu[l] == s.gpu[h]) {
                return true;
            }
        }
        return false;
    }
}
