/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.IntegerMath;
import java.util.Arrays;

/**
 * The time for which the windows of a task keep the GPU from other tasks. {@link GcapsWindow}, {@link GcapsBoost},
 * {@link Gate} and {@link EdfWindow} share it. Notation and proofs: {@code docs/window.md}.
 *
 * <p>A job of h keeps the GPU for G_h, for two updates per window, and while tasks of its own core preempt its host
 * part: {@code k_hc} jobs of each such task c, {@code Y_hc} each. The last part does not grow in proportion to the jobs
 * of h, because one job of c cannot stop two windows at once; {@link #at} takes the smaller of both counts.
 */
final class Windows implements Recurrence.Extra {
    /** The order of service on the GPU and on the cores. */
    enum Order {
        /** Fixed priorities on both. */
        FIXED,
        /** Deadlines on the GPU, fixed priorities on the cores. */
        EDF_GPU,
        /** Deadlines on both. */
        EDF
    }

    private final PreparedSet s;
    private final long[] r;
    private final Order order;
    private final boolean busy;
    private final boolean boost;
    private final boolean gate;
    private final int[][] stopper;
    private final long[][] stopperJobs;
    private final long[] stopperTotal;
    private final Recurrence scratch;
    private final int[] chargedTask;
    private final int[] chargedSource;
    private int charged;
    private int analysed;
    /** Whether two tasks of one core can have one CPU priority, or one absolute deadline. */
    private final boolean ties;
    /** What tasks of one process add; null if none share a context, or nothing is preempted anyway. */
    private final ProcessBlocking processes;
    private boolean delayed;
    private boolean carryIn;
    /** By segment: what ties add to the total, because they destroy the overlap of its parts; null = nothing. */
    private long[] lostOverlap;
    private final long[] gpuWork;
    private final long[] sumOf;
    private final long[] costOf;

    Windows(final PreparedSet s, final long[] r, final Order order, final boolean busy, final boolean boost,
        final boolean gate) {
        this.s = s;
        this.r = r;
        this.order = order;
        this.busy = busy;
        this.boost = boost;
        this.gate = gate;
        stopper = new int[s.count][];
        stopperJobs = new long[s.count][];
        stopperTotal = new long[s.count];
        scratch = new Recurrence(2 * s.count + 2);
        ties = order == Order.EDF || hasEqualPriorities();
        processes = s.contextCount > 0 && !gate ? new ProcessBlocking(s, r, this, order != Order.FIXED) : null;
        gpuWork = (ties || processes != null) && order != Order.EDF_GPU && !gate ? withLostOverlap() : s.gpuWork;
        chargedTask = new int[s.count];
        chargedSource = new int[s.count];
        sumOf = new long[s.count];
        costOf = new long[s.count];
        for (int h = 0; h < s.realTimeCount; h++) {
            if (s.gpu[h] >= 0) {
                collectStoppers(h);
            }
        }
    }

    private boolean hasEqualPriorities() {
        for (int p = 1; p < s.realTimeCount; p++) {
            if (s.priority[p] == s.priority[p - 1]) {
                return true;
            }
        }
        return false;
    }

    /** True if neither of two tasks of one core goes before the other one, so that the kernel can prefer either. */
    private boolean isTied(final int a, final int b) {
        return ties && (order == Order.EDF || s.priority[a] == s.priority[b]);
    }

    /**
     * A tied task of the same core and GPU can have the GPU and wait for the core, while this one has the core and
     * waits for the GPU: then its host part proceeds, but its device part does not. The total counts them once. A lower
     * task of a process can have the GPU on behalf of another one of that process, too.
     */
    private long[] withLostOverlap() {
        final long[] work = s.gpuWork.clone();
        for (int p = 0; p < s.realTimeCount; p++) {
            if (processes != null && s.gpu[p] >= 0 || isTiedOnGpu(p)) {
                for (int j = s.segmentStart[p]; j < s.segmentStart[p + 1]; j++) {
                    final long lost = lostOverlap(j);
                    if (lost > 0) {
                        lostOverlap = lostOverlap == null ? new long[s.segmentTotal.length] : lostOverlap;
                        lostOverlap[j] = lost;
                        work[p] = Math.addExact(work[p], lost);
                    }
                }
            }
        }
        return work;
    }

    private boolean isTiedOnGpu(final int p) {
        for (int q = 0; q < s.realTimeCount; q++) {
            if (q != p && s.gpu[p] >= 0 && s.gpu[q] == s.gpu[p] && s.cpu[q] == s.cpu[p] && isTied(p, q)) {
                return true;
            }
        }
        return false;
    }

    /** G of one segment, ties of its core included. */
    long total(final int segment) {
        return Math.addExact(s.segmentTotal[segment], lostOverlap == null ? 0 : lostOverlap[segment]);
    }

    private long lostOverlap(final int segment) {
        final long host = s.segmentHost[segment];
        final long device = s.segmentDevice[segment];
        final long gap = Math.addExact(host, device) - s.segmentTotal[segment];
        // a total above the sum declares idle time, which can lie beside any part of the host work
        return gap >= 0 ? gap : device > 0 ? host : 0;
    }

    /** G of a task, ties of its core included. */
    long gpuWork(final int h) {
        return gpuWork[h];
    }

    /**
     * Longest time by which the updates of a window outlast the job: the one in progress at its end is completed first.
     */
    long tail(final int h) {
        return gate ? 0 : Math.multiplyExact(2L, s.epsilon[h]);
    }

    /** Switches that a job of h causes: two updates per window; at a gate one switch of the hardware per window. */
    long switches(final int h) {
        return gate ? Math.multiplyExact((long) s.eta[h], s.theta[h]) : Math.multiplyExact(2L * s.eta[h],
            s.epsilon[h]);
    }

    /** G + 2 eps eta (at a gate G + theta eta): GPU time of one job of h, without stops on its core. */
    long hold(final int h) {
        return Math.addExact(gpuWork[h], switches(h));
    }

    /** Jitter of the hold: the last update runs beyond the completion of the job. */
    long holdJitter(final int h) {
        return Math.max(0, Math.addExact(r[h], tail(h)) - hold(h));
    }

    boolean isCpuHigher(final int h, final int i) {
        return order == Order.EDF ? h != i && h < s.realTimeCount : s.isCpuHigher(h, i);
    }

    boolean isGpuHigher(final int h, final int i) {
        return order == Order.FIXED ? s.isGpuHigher(h, i)
            : h != i && h < s.realTimeCount && s.gpu[h] >= 0 && s.gpu[h] == s.gpu[i];
    }

    /**
     * Largest number of jobs of h that can delay one job of i by an earlier deadline, for work of h that may last until
     * {@code tail} after its completion: those with {@code a_h <= a_i + D_i - D_h} and {@code a_h + R_h + tail > a_i}.
     */
    long deadlineCap(final int i, final int h, final long tail) {
        final long span = s.deadline[i] - s.deadline[h] + r[h] + tail;
        return span <= 0 ? 0 : IntegerMath.ceilDiv(span, s.period[h]);
    }

    private long cpuCap(final int i, final int h) {
        return order == Order.EDF ? deadlineCap(i, h, tail(h)) : Long.MAX_VALUE;
    }

    private long gpuCap(final int i, final int h) {
        return order == Order.FIXED ? Long.MAX_VALUE : deadlineCap(i, h, tail(h));
    }

    /** The tasks of the core of h that can stop its windows. */
    int[] stoppersOf(final int h) {
        return stopper[h];
    }

    /** CPU work per job of c that can stop h, on the same core, while h holds its GPU. */
    long stopCost(final int h, final int c) {
        if (s.gpu[c] < 0) {
            return boost ? 0 : s.cpuWork[c];
        }
        if (s.gpu[c] == s.gpu[h]) {
            // while the window of a higher task is open h is not the holder, unless it is on behalf of another task of
            // its process; that of a tied one can be open beside it
            final long host = !gate && (order == Order.EDF_GPU || isTied(c, h) || s.context[h] >= 0) ? s.host[c] : 0;
            return boost ? host : s.cpuWork[c] + host;
        }
        final long updates = switches(c);
        if (boost) {
            return Math.addExact(busy ? gpuWork[c] : s.host[c], updates);
        }
        if (!busy) {
            return Math.addExact(s.cpuWork[c] + s.host[c], updates);
        }
        // a thread that spins through stops of its GPU keeps the core for longer than its window takes alone
        return gate && s.stall[s.gpu[c]] == 0 ? Math.addExact(s.cpuWork[c] + gpuWork[c], updates) : r[c];
    }

    /** First count of the stops: all windows of a job of h are within its response time. */
    private void collectStoppers(final int h) {
        int size = 0;
        for (int c = 0; c < s.realTimeCount; c++) {
            if (s.cpu[c] == s.cpu[h] && isCpuHigher(c, h) && stopCost(h, c) > 0) {
                size++;
            }
        }
        stopper[h] = new int[size];
        stopperJobs[h] = new long[size];
        size = 0;
        for (int c = 0; c < s.realTimeCount; c++) {
            if (s.cpu[c] == s.cpu[h] && isCpuHigher(c, h) && stopCost(h, c) > 0) {
                stopper[h][size++] = c;
            }
        }
        countInResponse(h);
    }

    private void countInResponse(final int h) {
        for (int k = 0; k < stopper[h].length; k++) {
            final int c = stopper[h][k];
            final long jobs = IntegerMath.ceilDiv(r[h] + Math.max(0, r[c] - stopCost(h, c)), s.period[c]);
            stopperJobs[h][k] = Math.min(jobs, cpuCap(h, c));
        }
        sumUp(h);
    }

    private void sumUp(final int h) {
        long total = 0;
        for (int k = 0; k < stopper[h].length; k++) {
            total = Math.addExact(total, Math.multiplyExact(stopperJobs[h][k], stopCost(h, stopper[h][k])));
        }
        stopperTotal[h] = total;
    }

    /** Second count, when r[h] and the tasks above are final: window by window, in the full length of each. */
    void refine(final int h) {
        if (s.gpu[h] < 0) {
            return;
        }
        countInResponse(h);
        if (stopper[h].length == 0) {
            return;
        }
        final long[] jobs = new long[stopper[h].length];
        for (int j = s.segmentStart[h]; j < s.segmentStart[h + 1]; j++) {
            final long length = windowLength(h, j);
            for (int k = 0; k < jobs.length; k++) {
                final int c = stopper[h][k];
                jobs[k] += IntegerMath.ceilDiv(length + stopJitter(h, c), s.period[c]);
            }
        }
        for (int k = 0; k < jobs.length; k++) {
            stopperJobs[h][k] = Math.min(stopperJobs[h][k], jobs[k]);
        }
        sumUp(h);
    }

    /** At a gate the window is counted from the grant, when the thread still sleeps. */
    private long stopJitter(final int h, final int c) {
        return s.gpu[c] < 0 && !gate && arrivesReady(c, h) ? s.jitter[c] : Math.max(0, r[c] - stopCost(h, c));
    }

    /**
     * Whether a CPU-only task c above h has no earlier work left when the core serves h: it is then released no
     * earlier. A tied one can be queued behind h, and one that declares a blocking can wait for that.
     */
    private boolean arrivesReady(final int c, final int h) {
        return isPunctual(c) && !isTied(c, h);
    }

    /** Whether a CPU-only task is ready from its release to its end, so that it has no work where a start is. */
    private boolean isPunctual(final int c) {
        return !carryIn && s.blocking[c] == 0 && order != Order.EDF;
    }

    /** From now on takes every task to have earlier work left where an interval begins. */
    void carryInAlways() {
        carryIn = true;
    }

    /** Longest time from begin (at a gate: from the grant) to end of segment j of h, at most r[h]. */
    long windowLength(final int h, final int j) {
        scratch.reset();
        if (processes != null) {
            processes.of(h);
            scratch.addBase(Recurrence.BLOCKING, processes.totalNs());
        }
        scratch.addBase(Recurrence.OWN, Math.addExact(total(j), gate ? s.theta[h] : tail(h)));
        addStalls(h, scratch);
        for (int c = 0; c < s.realTimeCount; c++) {
            final boolean local = s.cpu[c] == s.cpu[h];
            if (local && isCpuHigher(c, h)) {
                if (gate) {
                    final long cost = stopCost(h, c);
                    scratch.add(Recurrence.PREEMPTION, s.period[c], r[c] - cost, cost);
                } else {
                    addLocal(h, c, true, scratch);
                }
            }
            if (!gate && isGpuHigher(c, h) && (!local || order == Order.EDF_GPU)) {
                scratch.add(Recurrence.INTERFERENCE, s.period[c], holdJitter(c), Math.addExact(hold(c),
                    stopperTotal[c]), 0,
                    gpuCap(h, c));
            }
        }
        scratch.setStretch(s.supplyOf(h));
        final long length = scratch.solve(r[h]);
        return length == Recurrence.EXCEEDED ? r[h] : length;
    }

    /**
     * Charges task h of higher CPU priority on the core of i.
     *
     * @param fromBegin true if the interval starts while i runs: a tied task can be queued behind it. Otherwise it is a
     *                  start, where no task above i or tied with it is ready
     */
    void addLocal(final int i, final int h, final boolean fromBegin, final Recurrence out) {
        final long cap = cpuCap(i, h);
        if (s.gpu[h] < 0) {
            final boolean punctual = fromBegin ? arrivesReady(h, i) : isPunctual(h);
            out.add(Recurrence.PREEMPTION, s.period[h], punctual ? s.jitter[h] : r[h] - s.cpuWork[h], s.cpuWork[h], 0,
                cap);
            return;
        }
        final long updates = switches(h);
        final boolean sameGpu = s.gpu[h] == s.gpu[i];
        if (busy && fromBegin && !sameGpu && !gate) {
            // While h spins for another GPU, any task may delay it there; its response time bounds all of that.
            out.add(Recurrence.PREEMPTION, s.period[h], 0, r[h], 0, cap);
        } else if (busy || sameGpu && order != Order.EDF_GPU) {
            final long cost = Math.addExact(s.cpuWork[h] + gpuWork[h], updates);
            final long tail = tail(h);
            out.add(Recurrence.PREEMPTION, s.period[h], r[h] + tail - cost, cost,
                cost - s.cpuWork[h] - s.host[h], cap);
        } else {
            final long cpu = s.cpuWork[h] + s.host[h];
            out.add(Recurrence.PREEMPTION, s.period[h], r[h] - cpu, gate ? cpu : Math.addExact(cpu, updates), 0, cap);
        }
    }

    /**
     * Charges the stops of the GPUs that can delay task i: its own, and in busy mode those for which a thread of higher
     * priority on its core may spin. Stops have no priority and no deadline.
     */
    void addStalls(final int i, final Recurrence out) {
        for (int g = 0; s.stalls && g < s.gpuCount; g++) {
            if (s.stall[g] > 0 && (s.gpu[i] == g || busy && isSpunForAbove(i, g))) {
                out.add(Recurrence.INTERFERENCE, s.stallPeriod[g], s.stall[g], s.stall[g]);
            }
        }
    }

    private boolean isSpunForAbove(final int i, final int g) {
        for (int h = 0; h < s.realTimeCount; h++) {
            if (h != i && s.cpu[h] == s.cpu[i] && s.gpu[h] == g && isCpuHigher(h, i)) {
                return true;
            }
        }
        return false;
    }

    /** What task i itself needs: C + G, two updates per window, declared blocking. */
    void addOwn(final int i, final Recurrence out) {
        out.addBase(Recurrence.OWN, Math.addExact(s.cpuWork[i], gpuWork[i]));
        out.addBase(Recurrence.OVERHEAD, GcapsSuspend.updates(s, i));
        out.addBase(Recurrence.BLOCKING, s.blocking[i]);
    }

    /** Starts the list of windows charged to task i. */
    void start(final int i) {
        charged = 0;
        analysed = i;
        delayed = false;
    }

    /** Charges the task of {@link #start} the windows of lower tasks that run on behalf of others of their process. */
    void addProcesses(final Recurrence out) {
        if (processes != null) {
            processes.of(analysed);
            out.addBase(Recurrence.BLOCKING, Math.multiplyExact((long) s.eta[analysed], processes.holdNs()));
            delayed = processes.totalNs() > processes.holdNs();
        }
    }

    /** Charges the windows of h to the task of {@link #start}. */
    void addWindows(final int i, final int h, final Recurrence out) {
        chargedTask[charged] = h;
        chargedSource[charged] = out.add(Recurrence.INTERFERENCE, s.period[h], holdJitter(h), hold(h), 0, gpuCap(i,
            h));
        charged++;
    }

    /** Makes the stops of the charged windows part of the recurrence. */
    void finish(final Recurrence out) {
        if (delayed) {
            out.setExtra(this, Recurrence.INTERFERENCE);
            return;
        }
        for (int k = 0; k < charged; k++) {
            if (stopperTotal[chargedTask[k]] > 0) {
                out.setExtra(this, Recurrence.INTERFERENCE);
                return;
            }
        }
    }

    @Override
    public long at(final long w, final Recurrence sources) {
        Arrays.fill(sumOf, 0);
        Arrays.fill(costOf, 0);
        for (int k = 0; k < charged; k++) {
            final int h = chargedTask[k];
            final long jobs = sources.jobsOf(chargedSource[k]);
            for (int x = 0; x < stopper[h].length; x++) {
                final int c = stopper[h][x];
                final long cost = stopCost(h, c);
                sumOf[c] = Math.addExact(sumOf[c], Math.multiplyExact(Math.multiplyExact(jobs, stopperJobs[h][x]),
                    cost));
                costOf[c] = Math.max(costOf[c], cost);
            }
        }
        for (int c = 0; delayed && c < s.realTimeCount; c++) {
            sumOf[c] = Math.addExact(sumOf[c], Math.multiplyExact((long) s.eta[analysed], processes.stopsNs(c)));
            costOf[c] = Math.max(costOf[c], processes.costNs(c));
        }
        long total = 0;
        for (int c = 0; c < s.realTimeCount; c++) {
            if (sumOf[c] > 0) {
                final long arrivals = IntegerMath.ceilDiv(Math.max(1, w) + Math.max(0, r[c] - costOf[c]), s.period[c]);
                // what stops a lower window can have a later deadline than the task
                final long cap = delayed && processes.stopsNs(c) > 0 ? Long.MAX_VALUE : cpuCap(analysed, c);
                final long jobs = c == analysed ? 1 : Math.min(arrivals, cap);
                total = Math.addExact(total, Math.min(sumOf[c], Math.multiplyExact(jobs, costOf[c])));
            }
        }
        return total;
    }
}
