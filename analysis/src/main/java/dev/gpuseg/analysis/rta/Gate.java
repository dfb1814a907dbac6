/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.Priority;

/**
 * Non-preemptive windows: the bound for a scheduler that can delay a begin but cannot preempt running work.
 *
 * <p>Hypotheses (theorem 3 of {@code docs/gate.md}):
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T, a task uses one GPU;</li>
 * <li>a granted window is never displaced; when a GPU is free, the waiting window of highest GPU priority is
 *     granted; a real-time window waits until every granted one has ended, best-effort ones included; best-effort
 *     windows are granted only while no real-time window is begun;</li>
 * <li>a waiting begin sleeps (in busy mode too: spinning at the gate could starve the holder on the same core for
 * ever);</li>
 * <li>nothing is written to the hardware, so there is no epsilon; the daemon's answer time belongs to the host
 * parts;</li>
 * <li>a best-effort job does its CPU work, and that of the other best-effort tasks of its core, once per period.</li>
 * </ul>
 * Recurrence: {@code R_i = C_i + G_i + theta eta_i + B_i + eta_i * max(F_lower, F_be)}
 * <pre>
 *  + sum_{h in hpp(i), eta_h = 0} ceil((R_i + Jr_h) / T_h) C_h
 *  + sum_{h in hpp(i), same GPU (busy: any)}  ceil((R_i + R_h - C_h - G_h) / T_h) (C_h + G_h) *)
 *  + sum_{h in hpp(i), another GPU, or eta_i = 0 (suspend)} ceil((R_i + R_h - C_h - Gm_h) / T_h) (C_h + Gm_h)
 *  + sum_{h remote, higher GPU priority} ceil((R_i + R_h - G_h) / T_h) G_h  + stops of their windows, as {@link
 *  GcapsWindow}
 * </pre>
 * F_lower = longest granted window of a real-time task of lower GPU priority, the stops by its core included; F_be =
 * time in which all best-effort windows of the GPU, granted together, drain. Both only if eta_i &gt; 0.
 *
 * <p>Source: this project; the shape (one lower section per request, all higher ones) is that of non-preemptive
 * fixed-priority scheduling (George, Rivierre, Spuri 1996), the stops are those of theorem 1.
 */
final class Gate extends FixedPointAnalysis<Gate.Work> {
    /** Windows of all tasks and the longest drain of the best-effort windows, per GPU. */
    record Work(Windows windows, long[] drain, long[] longest) {
    }

    private final boolean busy;

    Gate(final AnalysisDescription description) {
        super(description);
        busy = description.mode() == WaitMode.BUSY;
    }

    @Override
    boolean coversStalls() {
        return true;
    }

    @Override
    Work begin(final PreparedSet s, final long[] r) {
        final Windows windows = new Windows(s, r, Windows.Order.FIXED, busy, false, true);
        final long[] drain = new long[s.gpuCount];
        for (int g = 0; g < s.gpuCount; g++) {
            drain[g] = drain(s, g, busy);
        }
        final long[] longest = new long[s.count];
        for (int l = 0; l < s.realTimeCount; l++) {
            for (int j = s.segmentStart[l]; j < s.segmentStart[l + 1]; j++) {
                longest[l] = Math.max(longest[l], windows.windowLength(l, j));
            }
        }
        return new Work(windows, drain, longest);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Work work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        final Windows windows = work.windows();
        out.addBase(Recurrence.OVERHEAD, windows.switches(i));
        windows.addStalls(i, out);
        windows.start(i);
        long blocker = s.eta[i] > 0 ? work.drain()[s.gpu[i]] : 0;
        for (int h = 0; h < s.realTimeCount; h++) {
            final boolean local = s.cpu[h] == s.cpu[i];
            if (local && s.isCpuHigher(h, i)) {
                windows.addLocal(i, h, false, out);
            } else if (!local && s.isGpuHigher(h, i)) {
                windows.addWindows(i, h, out);
            }
            if (h != i && s.eta[i] > 0 && s.gpu[h] == s.gpu[i]
                && !Priority.isHigherThan(s.gpuPriority[h], s.gpuPriority[i])) {
                blocker = Math.max(blocker, work.longest()[h]);
            }
        }
        out.addBase(Recurrence.BLOCKING, Math.multiplyExact(blocker, (long) s.eta[i]));
        windows.finish(out);
    }

    @Override
    void settled(final PreparedSet s, final int i, final long[] r, final Work work) {
        if (!s.separateGpuPriorities) {
            work.windows().refine(i);
        }
    }

    /** Longest time until the best-effort windows granted together on GPU g have ended. */
    private static long drain(final PreparedSet s, final int g, final boolean busy) {
        final Recurrence out = new Recurrence(s.count + 1);
        boolean any = false;
        for (int b = s.realTimeCount; b < s.count; b++) {
            if (s.gpu[b] != g) {
                continue;
            }
            any = true;
            long longest = 0;
            for (int j = s.segmentStart[b]; j < s.segmentStart[b + 1]; j++) {
                final long switches = IntegerMath.ceilDiv(s.segmentDevice[j], s.timeslice[b]);
                final long span = Math.max(s.segmentTotal[j], Math.addExact(s.segmentHost[j], s.segmentDevice[j]));
                longest = Math.max(longest, Math.addExact(span, Math.multiplyExact(switches, s.theta[b])));
            }
            out.addBase(Recurrence.BLOCKING, longest);
        }
        if (!any) {
            return 0;
        }
        if (s.stall[g] > 0) {
            out.add(Recurrence.BLOCKING, s.stallPeriod[g], s.stall[g], s.stall[g]);
        }
        for (int c = 0; c < s.count; c++) {
            if (!hostsBestEffort(s, s.cpu[c], g)) {
                continue;
            }
            if (c < s.realTimeCount) {
                final long cost = s.gpu[c] < 0 || s.gpu[c] == g ? s.cpuWork[c]
                    : busy && s.stall[s.gpu[c]] > 0 ? s.deadline[c]   // it spins through stops
                    : s.cpuWork[c] + (busy ? s.gpuWork[c] : s.host[c]);
                out.add(Recurrence.BLOCKING, s.period[c], s.deadline[c] - cost, cost);
            } else {
                out.add(Recurrence.BLOCKING, s.period[c], s.period[c], s.cpuWork[c] + s.host[c]);
            }
        }
        long limit = 0;
        for (int i = 0; i < s.realTimeCount; i++) {
            limit = Math.max(limit, s.deadline[i]);
        }
        final long drain = out.solve(limit);
        return drain == Recurrence.EXCEEDED ? Long.MAX_VALUE / 4 : drain;
    }

    private static boolean hostsBestEffort(final PreparedSet s, final int cpu, final int g) {
        for (int b = s.realTimeCount; b < s.count; b++) {
            if (s.gpu[b] == g && s.cpu[b] == cpu) {
                return true;
            }
        }
        return false;
    }
}
