/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.Priority;

/** The recurrence that {@link GcapsWindow} and {@link GcapsBoost} share; they state their theorems. */
abstract class ExclusiveWindow extends FixedPointAnalysis<ExclusiveWindow.Work> {
    /** Windows of all tasks, and the spinners above the task under analysis. */
    record Work(Windows windows, SpinnerFloor floor) {
    }

    private final boolean busy;
    private final boolean boost;

    ExclusiveWindow(final AnalysisDescription description, final boolean boost) {
        super(description);
        busy = description.mode() == WaitMode.BUSY;
        this.boost = boost;
    }

    @Override
    boolean coversStalls() {
        return !boost || !busy;   // a boosted thread that spins through a stop keeps its core longer than G
    }

    @Override
    Work begin(final PreparedSet s, final long[] r) {
        final Windows windows = new Windows(s, r, Windows.Order.FIXED, busy, boost, false);
        if (s.separateGpuPriorities) {
            refineByGpuPriority(s, windows);
        }
        return new Work(windows, new SpinnerFloor(s));
    }

    @Override
    Work beginSearch(final PreparedSet s, final long[] r) {
        return new Work(new Windows(s, r, Windows.Order.FIXED, busy, boost, false), new SpinnerFloor(s));
    }

    /** Any order is sound; from the highest GPU priority down each window sees the refined ones above it. */
    static void refineByGpuPriority(final PreparedSet s, final Windows windows) {
        final boolean[] done = new boolean[s.realTimeCount];
        for (int step = 0; step < s.realTimeCount; step++) {
            int next = -1;
            for (int h = 0; h < s.realTimeCount; h++) {
                if (!done[h] && (next < 0 || Priority.isHigherThan(s.gpuPriority[h], s.gpuPriority[next]))) {
                    next = h;
                }
            }
            done[next] = true;
            windows.refine(next);
        }
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Work work, final Recurrence out) {
        final Windows windows = work.windows();
        windows.addOwn(i, out);
        windows.addStalls(i, out);
        windows.start(i);
        windows.addProcesses(out);
        work.floor().moveTo(i);
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == s.cpu[i]) {
                if (s.isCpuHigher(h, i)) {
                    windows.addLocal(i, h, false, out);
                } else if (boost && h != i && s.gpu[h] >= 0) {
                    out.addBase(Recurrence.BLOCKING, GcapsBoost.blocking(s, i, h, busy));
                }
            } else if (s.isGpuHigher(h, i) || busy && s.gpu[h] >= 0 && work.floor().isDelayedBy(h)) {
                windows.addWindows(i, h, out);
            }
        }
        windows.finish(out);
    }

    @Override
    void settled(final PreparedSet s, final int i, final long[] r, final Work work) {
        if (!s.separateGpuPriorities) {
            work.windows().refine(i);
        }
    }
}
