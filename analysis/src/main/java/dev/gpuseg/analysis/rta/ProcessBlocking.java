/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.core.Priority;
import java.util.Arrays;

/**
 * How long windows of lower priority keep the GPU from a window because they share a process, hence a context, with a
 * task that goes before it: the last class of instants in theorem 10 of {@code docs/processes.md}.
 *
 * <p>While a window of i is open no window below it is granted, and a context has one granted window at a time. So
 * each process delays each window of i by at most one window of a lower task l: by {@code G_l}, and by what tasks of
 * the core of l execute in place of its host part, at most {@code ceil((R_l + R_c - Y_lc) / T_c) Y_lc} for each c. Only
 * processes that have a task at or above i and one below it count; by deadlines, those that have two tasks.
 *
 * <p>Reused from task to task; not thread-safe.
 */
final class ProcessBlocking {
    private final PreparedSet s;
    private final long[] r;
    private final Windows windows;
    private final boolean byDeadline;
    /** By position: what the last call of {@link #of} found. */
    private final long[] stops;
    private final long[] cost;
    /** The same for one process. */
    private final long[] stopsOfOne;
    private long holdNs;

    ProcessBlocking(final PreparedSet s, final long[] r, final Windows windows, final boolean byDeadline) {
        this.s = s;
        this.r = r;
        this.windows = windows;
        this.byDeadline = byDeadline;
        stops = new long[s.count];
        cost = new long[s.count];
        stopsOfOne = new long[s.count];
    }

    /** Works out what one window of i can meet. */
    void of(final int i) {
        holdNs = 0;
        Arrays.fill(stops, 0);
        Arrays.fill(cost, 0);
        for (int context = 0; context < s.contextCount && s.gpu[i] >= 0; context++) {
            if (delays(context, i)) {
                addProcess(context, i);
            }
        }
    }

    /** Whether a task of the context goes before i, or is i, so that another one can run on its behalf. */
    private boolean delays(final int context, final int i) {
        for (int y = 0; y < s.realTimeCount; y++) {
            if (s.context[y] == context && s.gpu[y] == s.gpu[i]
                && (byDeadline || !Priority.isHigherThan(s.gpuPriority[i], s.gpuPriority[y]))) {
                return true;
            }
        }
        return false;
    }

    private boolean isBelow(final int l, final int i) {
        return l != i && (byDeadline || Priority.isHigherThan(s.gpuPriority[i], s.gpuPriority[l]));
    }

    private void addProcess(final int context, final int i) {
        long longest = 0;
        Arrays.fill(stopsOfOne, 0);
        for (int l = 0; l < s.realTimeCount; l++) {
            if (s.context[l] == context && isBelow(l, i)) {
                for (int j = s.segmentStart[l]; j < s.segmentStart[l + 1]; j++) {
                    longest = Math.max(longest, windows.total(j));
                }
                for (final int c : windows.stoppersOf(l)) {
                    final long each = windows.stopCost(l, c);
                    final long jobs = IntegerMath.ceilDiv(r[l] + Math.max(0, r[c] - each), s.period[c]);
                    stopsOfOne[c] = Math.max(stopsOfOne[c], Math.multiplyExact(jobs, each));
                    cost[c] = Math.max(cost[c], each);
                }
            }
        }
        holdNs = Math.addExact(holdNs, longest);
        for (int c = 0; c < stops.length; c++) {
            stops[c] = Math.addExact(stops[c], stopsOfOne[c]);
        }
    }

    /** Clean time of the lower windows that one window of the task can meet. */
    long holdNs() {
        return holdNs;
    }

    /** CPU time of task c in place of the host parts of those windows; 0 = none. */
    long stopsNs(final int c) {
        return stops[c];
    }

    /** The largest CPU time of one job of c in place of one of them. */
    long costNs(final int c) {
        return cost[c];
    }

    /** Clean time and stops together. */
    long totalNs() {
        long total = holdNs;
        for (final long stop : stops) {
            total = Math.addExact(total, stop);
        }
        return total;
    }
}
