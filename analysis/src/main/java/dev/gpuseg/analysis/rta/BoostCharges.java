/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import java.util.Arrays;

/**
 * What delays a task of {@link BoostedWindows}, and one of its windows: the parts of the recurrences of theorem 11
 * ({@code docs/boost.md}), in its notation. One object serves the analysis of one set. The methods that are not private
 * are the terms that a test plants errors in.
 */
class BoostCharges implements Recurrence.Extra {
    private static final long UNLIMITED = Long.MAX_VALUE;

    private final PreparedSet s;
    private final long[] r;
    private final boolean byDeadline;
    /** Whether GPU priorities change between two bounds, so that nothing that depends on them may be kept. */
    private final boolean searching;
    /** 2 eps eta: the updates that a job causes. */
    private final long[] updates;
    /** G + 2 eps eta: what a job can keep the GPU from a task that does not see its core. */
    private final long[] hold;
    /** Most time of a job in its windows in which its core serves it or nothing that it needs is missing. */
    private final long[] span;
    /** Most time of a job in its windows in which nothing that it needs is missing, and it does not need its core. */
    private final long[] quiet;
    /** By segment: longest known time from the end of its own updates to its end; at first the response time. */
    private final long[] length;
    private final boolean[] sharesCoreAndGpu;
    private final Recurrence scratch;
    private final Stops stops;

    private int analysed;
    private boolean inWindow;
    private int localCount;
    private final int[] local;
    private final long[] localLimit;
    private long slots;
    private long blocking;

    BoostCharges(final PreparedSet s, final long[] r, final boolean byDeadline, final boolean searching) {
        this.s = s;
        this.r = r;
        this.byDeadline = byDeadline;
        this.searching = searching;
        updates = new long[s.count];
        hold = new long[s.count];
        span = new long[s.count];
        quiet = new long[s.count];
        length = new long[s.segmentTotal.length];
        sharesCoreAndGpu = new boolean[s.count];
        local = new int[s.count];
        localLimit = new long[s.count];
        scratch = new Recurrence(2 * s.count + 2);
        for (int h = 0; h < s.realTimeCount; h++) {
            updates[h] = GcapsSuspend.updates(s, h);
            hold[h] = Math.addExact(s.gpuWork[h], updates[h]);
            for (int j = s.segmentStart[h]; j < s.segmentStart[h + 1]; j++) {
                span[h] = Math.addExact(span[h], spanOf(j));
                quiet[h] = Math.addExact(quiet[h], hasIdleTime(j) ? s.segmentTotal[j] : s.segmentDevice[j]);
                length[j] = r[h];
            }
            for (int y = 0; y < s.realTimeCount; y++) {
                sharesCoreAndGpu[h] |= y != h && s.gpu[h] >= 0 && s.gpu[y] == s.gpu[h] && s.cpu[y] == s.cpu[h]
                    && (byDeadline || isTied(y, h));
            }
        }
        stops = new Stops(this);
    }

    final PreparedSet prepared() {
        return s;
    }

    private boolean hasIdleTime(final int segment) {
        return s.segmentTotal[segment] > Math.addExact(s.segmentHost[segment], s.segmentDevice[segment]);
    }

    /** Idle time can lie beside any part of the host work, and host work that goes on alone destroys the overlap. */
    long spanOf(final int segment) {
        return Math.addExact(s.segmentHost[segment], hasIdleTime(segment) ? s.segmentTotal[segment]
            : s.segmentDevice[segment]);
    }

    boolean isTied(final int a, final int b) {
        return s.priority[a] == s.priority[b];
    }

    /** Whether a window of y can have the GPU while one of i is open. */
    private boolean isAhead(final int y, final int i) {
        return byDeadline ? y != i && y < s.realTimeCount && s.gpu[y] >= 0 && s.gpu[y] == s.gpu[i]
            : s.isGpuHigher(y, i);
    }

    private long tail(final int h) {
        return Math.multiplyExact(2L, s.epsilon[h]);
    }

    /** Jobs of h whose deadline is not after that of the job of i and whose windows matter after its arrival. */
    long deadlineLimit(final int i, final int h) {
        if (!byDeadline) {
            return UNLIMITED;
        }
        final long reach = s.deadline[i] - s.deadline[h] + r[h] + tail(h);
        return reach <= 0 ? 0 : IntegerMath.ceilDiv(reach, s.period[h]);
    }

    static long jobs(final long t, final long jitter, final long period) {
        return IntegerMath.ceilDiv(Math.addExact(Math.max(1, t), Math.max(0, jitter)), period);
    }

    long holdJitter(final int h) {
        return Math.max(0, Math.addExact(r[h], tail(h)) - hold[h]);
    }

    long quietCost(final int h) {
        return Math.addExact(quiet[h], updates[h]);
    }

    long quietJitter(final int h) {
        return Math.max(0, Math.addExact(r[h], tail(h)) - quietCost(h));
    }

    /** Sum over the windows of i of the jobs of a source that each can meet. */
    long requests(final int i, final long jitter, final long period) {
        long sum = 0;
        for (int j = s.segmentStart[i]; j < s.segmentStart[i + 1]; j++) {
            sum = Math.addExact(sum, jobs(length[j], jitter, period));
        }
        return sum;
    }

    /** Fills the recurrence of the task at position i. */
    void task(final int i, final Recurrence out) {
        if (searching) {
            // lengths of other windows were computed with other GPU priorities
            for (int h = 0; h < s.realTimeCount; h++) {
                Arrays.fill(length, s.segmentStart[h], s.segmentStart[h + 1], r[h]);
            }
        }
        for (int j = s.segmentStart[i]; j < s.segmentStart[i + 1]; j++) {
            length[j] = window(i, j);
        }
        analysed = i;
        inWindow = false;
        localCount = 0;
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], sharesCoreAndGpu[i] ? span[i] : s.gpuWork[i]));
        out.addBase(Recurrence.OVERHEAD, updates[i]);
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
        if (s.stalls && s.gpu[i] >= 0 && s.stall[s.gpu[i]] > 0) {
            final int g = s.gpu[i];
            out.add(Recurrence.INTERFERENCE, s.stallPeriod[g], s.stall[g], s.stall[g], 0, requests(i, s.stall[g],
                s.stallPeriod[g]));
        }
        stops.start();
        for (int h = 0; h < s.realTimeCount; h++) {
            final boolean above = s.cpu[h] == s.cpu[i] && s.isCpuHigher(h, i);
            if (above && s.gpu[h] < 0) {
                out.add(Recurrence.PREEMPTION, s.period[h], s.blocking[h] == 0 ? s.jitter[h] : r[h] - s.cpuWork[h],
                    s.cpuWork[h]);
            } else if (above && isAhead(h, i)) {
                addLocal(h, Math.min(deadlineLimit(i, h), requests(i, quietJitter(h), s.period[h])));
            } else if (above) {
                final long work = s.cpuWork[h] + s.host[h];
                out.add(Recurrence.PREEMPTION, s.period[h], r[h] - work, work);
            } else if (isAhead(h, i)) {
                final long limit = Math.min(deadlineLimit(i, h), requests(i, holdJitter(h), s.period[h]));
                stops.charge(h, out.add(Recurrence.INTERFERENCE, s.period[h], holdJitter(h), hold[h], 0, limit));
            }
        }
        for (int k = 0; k < stops.count(); k++) {
            stops.limit(k, requests(i, stops.jitter(k), s.period[stops.task(k)]));
        }
        slots = stretches(i);
        out.setExtra(this, Recurrence.INTERFERENCE);
    }

    long stretches(final int i) {
        return GcapsBoost.stretches(s, i);
    }

    /** Jobs of the lower task l that can be boosted in an interval of length w. */
    long blockers(final int l, final long w) {
        return jobs(w, r[l], s.period[l]);
    }

    /** Part of F_ij that the window takes alone; its own updates come before. */
    long aloneInWindow(final int i, final int j) {
        return sharesCoreAndGpu[i] ? spanOf(j) : s.segmentTotal[j];
    }

    /** Jobs of c that stop the windows of one job of h, at most. */
    long stopJobs(final int h, final int c, final long jitter) {
        long sum = 0;
        for (int j = s.segmentStart[h]; j < s.segmentStart[h + 1]; j++) {
            sum = Math.addExact(sum, jobs(length[j], jitter, s.period[c]));
        }
        return Math.min(sum, jobs(r[h], jitter, s.period[c]));
    }

    private void addLocal(final int h, final long limit) {
        local[localCount] = h;
        localLimit[localCount++] = limit;
    }

    /** Longest time from the end of the first updates of window j of i to its end, at most r[i]. */
    long window(final int i, final int j) {
        analysed = i;
        inWindow = true;
        localCount = 0;
        scratch.reset();
        scratch.addBase(Recurrence.OWN, aloneInWindow(i, j));
        if (s.stalls && s.stall[s.gpu[i]] > 0) {
            final int g = s.gpu[i];
            scratch.add(Recurrence.INTERFERENCE, s.stallPeriod[g], s.stall[g], s.stall[g]);
        }
        stops.start();
        for (int h = 0; h < s.realTimeCount; h++) {
            final boolean above = s.cpu[h] == s.cpu[i] && s.isCpuHigher(h, i) && s.gpu[h] >= 0;
            if (above && isAhead(h, i)) {
                addLocal(h, deadlineLimit(i, h));
            } else if (above) {
                scratch.add(Recurrence.PREEMPTION, s.period[h], r[h] - s.host[h], s.host[h]);
            } else if (isAhead(h, i)) {
                stops.charge(h, scratch.add(Recurrence.INTERFERENCE, s.period[h], holdJitter(h), hold[h], 0,
                    deadlineLimit(i, h)));
            }
        }
        if (localCount > 0 || stops.count() > 0) {
            scratch.setExtra(this, Recurrence.INTERFERENCE);
        }
        final long found = scratch.solve(r[i]);
        return found == Recurrence.EXCEEDED ? r[i] : found;
    }

    @Override
    public long at(final long w, final Recurrence sources) {
        long sum = stops.at(w, sources);
        for (int k = 0; k < localCount; k++) {
            sum = Math.addExact(sum, localAt(local[k], w, localLimit[k]));
        }
        blocking = inWindow ? 0 : blockingAt(w);
        return Math.addExact(sum, blocking);
    }

    @Override
    public long blockingPart() {
        return blocking;
    }

    /** A task above i on its core whose windows can keep the GPU from i: the smaller one of two counts. */
    private long localAt(final int h, final long w, final long limit) {
        final long cpu = inWindow ? 0 : s.cpuWork[h];
        final long whole = Math.addExact(cpu + span[h], updates[h]);
        final long together = Math.multiplyExact(jobs(w, r[h] + tail(h) - whole, s.period[h]), whole);
        final long served = cpu + s.host[h];
        final long onCore = Math.multiplyExact(jobs(w, r[h] - served, s.period[h]), served);
        final long onGpu = Math.multiplyExact(Math.min(limit, jobs(w, quietJitter(h), s.period[h])), quietCost(h));
        return Math.min(together, Math.addExact(onCore, onGpu));
    }

    /** Host parts of lower tasks on the core of i, boosted since before a stretch of i without open window. */
    private long blockingAt(final long w) {
        long sum = 0;
        final int i = analysed;
        for (int l = 0; l < s.realTimeCount; l++) {
            if (l == i || s.gpu[l] < 0 || s.cpu[l] != s.cpu[i] || s.isCpuHigher(l, i)) {
                continue;
            }
            final long copies = blockers(l, w);
            sum = Math.addExact(sum, GcapsBoost.largest(s.segmentHost, s.segmentStart[l], s.segmentStart[l + 1], slots,
                copies));
        }
        return sum;
    }

    /**
     * Stops: a task c with windows, above h on its core, is boosted too and keeps the host part of h from the core
     * while h has the GPU.
     */
    private static final class Stops {
        private final BoostCharges of;
        private final PreparedSet s;
        /** Charged tasks with their sources, and pairs of one of them and a task that stops it. */
        private int pairs;
        private int[] source = new int[8];
        private int[] stopper = new int[8];
        private long[] perJob = new long[8];
        private int size;
        private final int[] distinct;
        private final long[] limit;
        private final long[] sum;

        Stops(final BoostCharges of) {
            this.of = of;
            s = of.s;
            distinct = new int[s.count];
            limit = new long[s.count];
            sum = new long[s.count];
        }

        void start() {
            pairs = 0;
            size = 0;
        }

        int count() {
            return size;
        }

        int task(final int k) {
            return distinct[k];
        }

        long jitter(final int k) {
            return jitterOf(distinct[k]);
        }

        private long jitterOf(final int c) {
            return Math.max(0, of.r[c] - s.host[c]);
        }

        void limit(final int k, final long jobs) {
            limit[k] = jobs;
        }

        /** Charges the stops of h; those by tasks that are not below the analysed one are charged already. */
        void charge(final int h, final int sourceOfH) {
            final int i = of.analysed;
            final boolean isLocal = s.cpu[h] == s.cpu[i];
            for (int c = 0; c < s.realTimeCount; c++) {
                if (s.cpu[c] != s.cpu[h] || s.gpu[c] < 0 || s.host[c] == 0 || !s.isCpuHigher(c, h)
                    || isLocal && (c == i || s.isCpuHigher(c, i))
                    || !of.byDeadline && s.gpu[c] == s.gpu[h] && !of.isTied(c, h)) {
                    continue;
                }
                add(sourceOfH, c, of.stopJobs(h, c, jitterOf(c)));
            }
        }

        private void add(final int sourceOfH, final int c, final long jobs) {
            if (pairs == source.length) {
                source = Arrays.copyOf(source, 2 * pairs);
                stopper = Arrays.copyOf(stopper, 2 * pairs);
                perJob = Arrays.copyOf(perJob, 2 * pairs);
            }
            int k = 0;
            while (k < size && distinct[k] != c) {
                k++;
            }
            if (k == size) {
                distinct[size] = c;
                limit[size++] = UNLIMITED;
            }
            source[pairs] = sourceOfH;
            stopper[pairs] = k;
            perJob[pairs++] = jobs;
        }

        long at(final long w, final Recurrence sources) {
            Arrays.fill(sum, 0, size, 0);
            for (int p = 0; p < pairs; p++) {
                sum[stopper[p]] = Math.addExact(sum[stopper[p]], Math.multiplyExact(sources.jobsOf(source[p]),
                    perJob[p]));
            }
            long total = 0;
            for (int k = 0; k < size; k++) {
                final int c = distinct[k];
                final long most = Math.min(limit[k], BoostCharges.jobs(w, jitterOf(c), s.period[c]));
                total = Math.addExact(total, Math.multiplyExact(Math.min(sum[k], most), s.host[c]));
            }
            return total;
        }
    }
}
