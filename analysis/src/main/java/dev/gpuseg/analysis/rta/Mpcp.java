/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.Arrays;

/**
 * The GPU as a mutex under the multiprocessor priority ceiling protocol; windows are critical sections.
 *
 * <p>Hypotheses:
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T; each GPU is one lock;</li>
 * <li>a waiting request sleeps, requests are served by GPU priority, a window is never preempted;</li>
 * <li>the holder's thread runs above all unboosted tasks of its core; X = the part of a window that takes the core: Gm
 *     (suspend) or G (busy);</li>
 * <li>the protocol costs nothing (as in the published comparison).</li>
 * </ul>
 * Recurrence: {@code R_i = C_i + G_i + B_i + sum_{h in hpp(i)} ceil((R_i + R_h - C_h - X_h) / T_h) (C_h + X_h)
 * + DH + DL + PM}
 * <pre>
 *  H_xk = G_xk + sum_{y on the core of x, another GPU} max_u X_yu                             holding time
 *  Q_i  = lfp { max_{l lower, u} H_lu + sum_{h higher} ceil((Q + R_h - G_h) / T_h) sum_u H_hu }   wait of one request
 *  DH   = sum_{h higher} min( eta_i ceil((Q_i + R_h - G_h) / T_h), ceil((R_i + R_h - G_h) / T_h) ) sum_u H_hu
 *  DL   = the eta_i largest H_lk of lower tasks, each at most ceil((R_i + D_l - H_lk) / T_l) times
 *  PM   = sum_{l local, lower} the eta_i + 1 largest X_lk, each at most ceil((R_i + D_l - X_lk) / T_l) times
 * </pre>
 * Lower tasks of DL and PM include best-effort tasks, each job of which is assumed to end before the next arrives.
 * higher = higher GPU priority on the same GPU, any core.
 *
 * <p>Source: MPCP (Rajkumar 1990), holding time and waiting recurrence of Lakshmanan, de Niz, Rajkumar (RTSS 2009)
 * and the combination of request-driven and job-driven counts of Patel, Baek, Kim, Rajkumar (RTAS 2018); the text of
 * the last one was not available, so each count is derived in {@code docs/locks.md}. The published GCAPS program
 * differs: its request-driven count is a time (the cap never takes effect), its H adds the windows of all higher tasks
 * of all cores, its wait recurrence has no limit, a task's own windows block it, the jitter of GPU parts is that of CPU
 * parts, and a spinning holder blocks its core for the host part alone.
 */
final class Mpcp extends FixedPointAnalysis<Mpcp.Work> {
    /** Holding times: per segment, per task the sum and the largest. */
    record Work(long[] hold, long[] holdSum, long[] holdMax, Recurrence scratch) {
    }

    private final boolean busy;

    Mpcp(final AnalysisDescription description) {
        super(description);
        busy = description.mode() == WaitMode.BUSY;
    }

    @Override
    Work begin(final PreparedSet s, final long[] r) {
        final long[] hold = s.segmentTotal.clone();
        final long[] sum = new long[s.count];
        final long[] max = new long[s.count];
        for (int x = 0; x < s.count; x++) {
            final long delay = s.gpuCount > 1 && s.gpu[x] >= 0 ? boostedByOtherGpus(s, x, busy) : 0;
            for (int j = s.segmentStart[x]; j < s.segmentStart[x + 1]; j++) {
                hold[j] = Math.addExact(hold[j], delay);
                sum[x] = Math.addExact(sum[x], hold[j]);
                max[x] = Math.max(max[x], hold[j]);
            }
        }
        return new Work(hold, sum, max, new Recurrence(s.count + 1));
    }

    /** Longest boosted parts of the tasks that share the core of x but use another GPU, once each. */
    static long boostedByOtherGpus(final PreparedSet s, final int x, final boolean busy) {
        long delay = 0;
        for (int y = 0; y < s.count; y++) {
            if (y != x && s.cpu[y] == s.cpu[x] && s.gpu[y] >= 0 && s.gpu[y] != s.gpu[x]) {
                delay = Math.addExact(delay, GcapsBoost.largest(busy ? s.segmentTotal : s.segmentHost,
                    s.segmentStart[y],
                    s.segmentStart[y + 1], 1, 1));
            }
        }
        return delay;
    }

    /** C + X of a task: what one job takes from its core. */
    static long onCore(final PreparedSet s, final int h, final boolean busy) {
        return s.cpuWork[h] + (busy ? s.gpuWork[h] : s.host[h]);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Work work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        final boolean usesGpu = s.eta[i] > 0;
        final long wait = usesGpu ? requestWait(s, i, r, work) : 0;
        for (int h = 0; h < s.realTimeCount; h++) {
            final boolean local = s.cpu[h] == s.cpu[i];
            if (local && s.isCpuHigher(h, i)) {
                final long cost = onCore(s, h, busy);
                out.add(Recurrence.PREEMPTION, s.period[h], r[h] - cost, cost);
            }
            if (usesGpu && s.isGpuHigher(h, i)) {
                final long jitter = Math.max(0, r[h] - s.gpuWork[h]);
                final long cap = wait == Recurrence.EXCEEDED ? Long.MAX_VALUE
                    : Math.multiplyExact((long) s.eta[i], IntegerMath.ceilDiv(Math.max(1, wait) + jitter,
                    s.period[h]));
                out.add(Recurrence.BLOCKING, s.period[h], jitter, work.holdSum()[h], 0, cap);
            }
        }
        out.setExtra((w, at) -> lower(s, i, w, work), Recurrence.BLOCKING);
    }

    /** DL + PM. */
    private long lower(final PreparedSet s, final int i, final long w, final Work work) {
        long total = s.eta[i] > 0 ? lowerRequests(s, i, w, work) : 0;
        for (int l = 0; l < s.count; l++) {
            if (l != i && s.gpu[l] >= 0 && s.cpu[l] == s.cpu[i] && !s.isCpuHigher(l, i)) {
                total = Math.addExact(total, boostedLower(s, i, l, w));
            }
        }
        return total;
    }

    /**
     * Q_i, or {@link Recurrence#EXCEEDED} if it is longer than the deadline (then the job-driven count stands alone).
     */
    private static long requestWait(final PreparedSet s, final int i, final long[] r, final Work work) {
        final Recurrence wait = work.scratch();
        wait.reset();
        long blocker = 0;
        for (int l = 0; l < s.count; l++) {
            if (l == i || s.gpu[l] != s.gpu[i]) {
                continue;
            }
            if (s.isGpuHigher(l, i)) {
                wait.add(Recurrence.BLOCKING, s.period[l], r[l] - s.gpuWork[l], work.holdSum()[l]);
            } else {
                blocker = Math.max(blocker, work.holdMax()[l]);
            }
        }
        wait.addBase(Recurrence.BLOCKING, blocker);
        return wait.solve(s.deadline[i]);
    }

    /** DL: lower requests in front of the eta_i requests of a job. */
    private static long lowerRequests(final PreparedSet s, final int i, final long w, final Work work) {
        final long[] holds = new long[work.hold().length];
        final long[] copies = new long[holds.length];
        int size = 0;
        for (int l = 0; l < s.count; l++) {
            if (l == i || s.gpu[l] != s.gpu[i] || s.isGpuHigher(l, i)) {
                continue;
            }
            for (int j = s.segmentStart[l]; j < s.segmentStart[l + 1]; j++) {
                holds[size] = work.hold()[j];
                copies[size++] = copies(s, l, w, work.hold()[j]);
            }
        }
        return largest(holds, copies, size, s.eta[i]);
    }

    /** PM for one local lower task. */
    private long boostedLower(final PreparedSet s, final int i, final int l, final long w) {
        final int size = s.eta[l];
        final long[] parts = Arrays.copyOfRange(busy ? s.segmentTotal : s.segmentHost, s.segmentStart[l],
            s.segmentStart[l + 1]);
        final long[] copies = new long[size];
        for (int k = 0; k < size; k++) {
            copies[k] = copies(s, l, w, parts[k]);
        }
        return largest(parts, copies, size, s.eta[i] + 1L);
    }

    /** Sections of length {@code part} that jobs of l can execute in an interval of length w. */
    private static long copies(final PreparedSet s, final int l, final long w, final long part) {
        return IntegerMath.ceilDiv(Math.max(1, w) + Math.max(0, s.deadline[l] - part), s.period[l]);
    }

    /** Sum of the {@code slots} largest values, value k usable {@code copies[k]} times; destroys its arguments. */
    private static long largest(final long[] values, final long[] copies, final int size, final long slots) {
        long left = slots;
        long sum = 0;
        while (left > 0) {
            int best = -1;
            for (int k = 0; k < size; k++) {
                if (copies[k] > 0 && values[k] > 0 && (best < 0 || values[k] > values[best])) {
                    best = k;
                }
            }
            if (best < 0) {
                return sum;
            }
            final long taken = Math.min(left, copies[best]);
            sum = Math.addExact(sum, Math.multiplyExact(taken, values[best]));
            copies[best] = 0;
            left -= taken;
        }
        return sum;
    }
}
