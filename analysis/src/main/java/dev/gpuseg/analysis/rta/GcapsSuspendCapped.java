/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;

/**
 * {@link GcapsSuspend} with a request-driven cap: GPU work of others delays task i only while one of its segments is
 * open.
 *
 * <p>Hypotheses: those of {@link GcapsSuspend}.
 *
 * <p>Recurrence: that of {@link GcapsSuspend}, the jobs of each h in the GPU terms limited to {@code sum_j
 * ceil((W_ij + Jg_h) / T_h)}, where {@code W_ij} bounds the time from begin to end of segment j: {@code W_ij = G_ij
 * + 3 eps + sum_{h in hpp(i)} ceil((W_ij + Jc_h) / T_h) (C_h + Gm_h + 2 eps eta_h) + GPU terms at W_ij}, {@code Jc_h
 * = R_h - (C_h + Gm_h)} for every local task (a segment may begin with carried-in work of all of them). If W_ij
 * passes the deadline the cap is not used. Never larger than {@link GcapsSuspend} by construction.
 *
 * <p>Source: this project; the same combination as Patel et al. (RTAS 2018) use for locks.
 */
final class GcapsSuspendCapped extends FixedPointAnalysis<Recurrence> {
    GcapsSuspendCapped(final AnalysisDescription description) {
        super(description);
    }

    @Override
    Recurrence begin(final PreparedSet s, final long[] r) {
        return new Recurrence(2 * s.count + 2);
    }

    @Override
    void build(final PreparedSet s, final int i, final long[] r, final Recurrence segment, final Recurrence out) {
        GcapsSuspend.addOwn(s, i, out);
        final long[] length = new long[s.eta[i]];
        boolean capped = true;
        for (int j = 0; j < length.length && capped; j++) {
            segment.reset();
            segment.addBase(Recurrence.OWN, Math.addExact(s.segmentTotal[s.segmentStart[i] + j],
                Math.multiplyExact(3L, s.epsilon[i])));
            addOthers(s, i, r, null, segment);
            length[j] = segment.solve(s.deadline[i]);
            capped = length[j] != Recurrence.EXCEEDED;
        }
        addOthers(s, i, r, capped ? length : new long[0], out);
    }

    /** The sums over other tasks; with {@code lengths == null} in the form for one segment. */
    private static void addOthers(final PreparedSet s, final int i, final long[] r, final long[] lengths,
        final Recurrence out) {
        for (int h = 0; h < s.realTimeCount; h++) {
            final boolean local = s.cpu[h] == s.cpu[i];
            if (local && s.isCpuHigher(h, i)) {
                final long work = s.cpuWork[h] + s.host[h];
                final boolean noCarryIn = s.eta[h] == 0 && lengths != null;
                out.add(Recurrence.PREEMPTION, s.period[h], noCarryIn ? s.jitter[h] : r[h] - work,
                    Math.addExact(work, GcapsSuspend.updates(s, h)));
                if (s.gpu[h] >= 0 && s.gpu[h] == s.gpu[i]) {
                    out.add(Recurrence.INTERFERENCE, s.period[h], r[h] - s.device[h], s.device[h], 0,
                        cap(s, h, r[h] - s.device[h], lengths));
                }
            } else if (!local && s.isGpuHigher(h, i)) {
                out.add(Recurrence.INTERFERENCE, s.period[h], r[h] - s.device[h],
                    Math.addExact(s.device[h], GcapsSuspend.updates(s, h)), 0, cap(s, h, r[h] - s.device[h], lengths));
            }
        }
    }

    private static long cap(final PreparedSet s, final int h, final long jitter, final long[] lengths) {
        if (lengths == null || lengths.length == 0) {
            return Long.MAX_VALUE;
        }
        long jobs = 0;
        for (final long length : lengths) {
            jobs = Math.addExact(jobs, IntegerMath.ceilDiv(Math.max(1, length) + Math.max(0, jitter), s.period[h]));
        }
        return jobs;
    }
}
