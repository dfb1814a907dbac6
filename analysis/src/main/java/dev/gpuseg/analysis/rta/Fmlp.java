/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import dev.gpuseg.analysis.model.WaitMode;

/**
 * The GPU as a FIFO lock (FMLP+); windows are critical sections.
 *
 * <p>Hypotheses:
 * <ul>
 * <li>partitioned preemptive fixed-priority CPUs, sporadic tasks, D &lt;= T; each GPU is one lock;</li>
 * <li>a waiting request sleeps, requests are served in the order of their arrival, a window is never preempted;</li>
 * <li>the holder's thread runs above all unboosted tasks of its core; X = Gm (suspend) or G (busy);</li>
 * <li>the protocol costs nothing (as in the published comparison).</li>
 * </ul>
 * Recurrence: {@code R_i = C_i + G_i + B_i + sum_{h in hpp(i)} ceil((R_i + R_h - C_h - X_h) / T_h) (C_h +
 * X_h)}
 * <pre>
 *  + sum_{x remote, same GPU}                  min(eta_i, n_x) H_x            one request of x ahead of each of i's
 *  + sum_{h in hpp(i), same GPU}               min(eta_i, n_h) max_u Ge_hu    (suspend; see below)
 *  + sum_{l local, lower CPU priority}         min(1 + z_i, n_l) H_l          ahead of i's, or boosted on its core
 *  n_x = eta_x ceil((R_i + T_x) / T_x);   z_i = eta_i (suspend), min(eta_i, remote requests) (busy)
 *  H_x = max_u G_xu + boosted parts of local tasks of other GPUs
 * </pre>
 * Best-effort tasks issue requests like sporadic ones: each job is assumed to end before the next arrives.
 *
 * <p>Source: FMLP+ (Brandenburg, ECRTS 2014), suspension-aware bound. <b>Corrected</b> against the published GCAPS
 * program: that bound assumes that critical sections run on the CPU, so that a local higher-priority holder cannot be
 * ahead of a request of i (i would not run). A thread that sleeps during its device part holds the lock, and i can run
 * and request it; the second line charges that. Derivation: {@code docs/locks.md}.
 */
final class Fmlp extends FixedPointAnalysis<Void> {
    private final boolean busy;

    Fmlp(final AnalysisDescription description) {
        super(description);
        busy = description.mode() == WaitMode.BUSY;
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Void work, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], s.gpuWork[i]));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.cpu[h] == s.cpu[i] && s.isCpuHigher(h, i)) {
                final long cost = Mpcp.onCore(s, h, busy);
                out.add(Recurrence.PREEMPTION, s.period[h], r[h] - cost, cost);
            }
        }
        out.setExtra((w, at) -> blocking(s, i, w), Recurrence.BLOCKING);
    }

    private long blocking(final PreparedSet s, final int i, final long w) {
        long remoteRequests = 0;
        long total = 0;
        for (int x = 0; x < s.count; x++) {
            if (x != i && s.gpu[x] >= 0 && s.gpu[x] == s.gpu[i] && s.cpu[x] != s.cpu[i]) {
                final long requests = Math.min(s.eta[i], requests(s, x, w));
                remoteRequests = Math.min(s.eta[i], remoteRequests + requests);
                total = Math.addExact(total, Math.multiplyExact(requests, hold(s, x)));
            }
        }
        final long sleeps = busy ? remoteRequests : s.eta[i];
        for (int x = 0; x < s.count; x++) {
            if (x == i || s.gpu[x] < 0 || s.cpu[x] != s.cpu[i]) {
                continue;
            }
            final boolean sameGpu = s.gpu[x] == s.gpu[i];
            if (!s.isCpuHigher(x, i)) {
                total = Math.addExact(total,
                    Math.multiplyExact(Math.min(1 + sleeps, requests(s, x, w)), hold(s, x)));
            } else if (sameGpu && !busy) {
                total = Math.addExact(total, Math.multiplyExact(Math.min(s.eta[i], requests(s, x, w)),
                    maximum(s.segmentDevice, s, x)));
            }
        }
        return total;
    }

    /** n_x: requests of x that an interval of length w can meet. */
    private static long requests(final PreparedSet s, final int x, final long w) {
        return Math.multiplyExact((long) s.eta[x], IntegerMath.ceilDiv(w + s.period[x], s.period[x]));
    }

    private long hold(final PreparedSet s, final int x) {
        final long others = s.gpuCount > 1 ? Mpcp.boostedByOtherGpus(s, x, busy) : 0;
        return Math.addExact(maximum(s.segmentTotal, s, x), others);
    }

    private static long maximum(final long[] values, final PreparedSet s, final int x) {
        long max = 0;
        for (int j = s.segmentStart[x]; j < s.segmentStart[x + 1]; j++) {
            max = Math.max(max, values[j]);
        }
        return max;
    }
}
