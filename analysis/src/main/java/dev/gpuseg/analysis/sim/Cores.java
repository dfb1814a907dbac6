/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.Arrays;

/** The cores: partitioned and preemptive, each serves the first of its threads that can run. */
final class Cores {
    private final Run run;
    private final SimulatedSet set;
    private final int[] onCpu;
    private final long[] sinceNs;
    private final boolean[] dirty;
    /** Segments of real-time tasks alone keep their GPU until they end. */
    private boolean preemptive;

    Cores(final Run run) {
        this.run = run;
        set = run.set;
        onCpu = new int[set.cpuCount];
        sinceNs = new long[set.cpuCount];
        dirty = new boolean[set.cpuCount];
    }

    void reset() {
        Arrays.fill(onCpu, -1);
        Arrays.fill(dirty, false);
        Arrays.fill(sinceNs, 0);
    }

    /** Whether the GPU's policy can preempt what was granted. */
    void preemptive(final boolean can) {
        preemptive = can;
    }

    /** Something changed for the core of a task. */
    void touch(final int task) {
        dirty[set.cpuOf[task]] = true;
    }

    void touchCore(final int cpu) {
        dirty[cpu] = true;
    }

    /** Brings the cores that something changed for to rest; false if there was none. */
    boolean settle() {
        boolean moved = false;
        for (int c = 0; c < dirty.length; c++) {
            if (dirty[c]) {
                dirty[c] = false;
                settle(c);
                moved = true;
            }
        }
        return moved;
    }

    /**
     * From the moment it holds its GPU (its update is complete) until it ends or loses it; best-effort threads only
     * where they cannot lose it. With a ceiling: from begin to end, real-time threads only.
     */
    private boolean isBoosted(final int task) {
        switch (run.options.hold()) {
            case CEILING:
                return set.realTime[task] && run.threads.isInWindow(task);
            case BOOST:
                return run.segments.holdsGpu(task) && (set.realTime[task] || !preemptive)
                    && run.threads.isInWindow(task);
            default:
                return false;
        }
    }

    /** True if a goes before b on their core. */
    private boolean isBefore(final int a, final int b) {
        final boolean boostedA = isBoosted(a);
        final boolean boostedB = isBoosted(b);
        if (boostedA != boostedB) {
            return boostedA;
        }
        if (set.realTime[a] != set.realTime[b]) {
            return set.realTime[a];
        }
        final long arrivalA = run.threads.arrivalNs(a);
        final long arrivalB = run.threads.arrivalNs(b);
        if (run.options.cpuPolicy() == SimulationOptions.CpuPolicy.FP) {
            if (set.priority[a] != set.priority[b]) {
                return set.priority[a] > set.priority[b];
            }
        } else if (set.realTime[a]) {
            final long deadlineA = arrivalA + set.deadlineNs[a];
            final long deadlineB = arrivalB + set.deadlineNs[b];
            if (deadlineA != deadlineB) {
                return deadlineA < deadlineB;
            }
        }
        return arrivalA != arrivalB ? arrivalA < arrivalB : a < b;
    }

    private void settle(final int cpu) {
        account(cpu);
        while (true) {
            int best = -1;
            for (final int task : set.cpuTasks[cpu]) {
                if (run.threads.isRunnable(task) && (best < 0 || isBefore(task, best))) {
                    best = task;
                }
            }
            onCpu[cpu] = best;
            if (best < 0 || run.threads.isSpinning(best)) {
                run.queue.set(run.cpuSource + cpu, EventQueue.NEVER);
                return;
            }
            final long workNs = run.threads.workNs(best);
            if (workNs > 0) {
                run.queue.set(run.cpuSource + cpu, Math.addExact(run.nowNs, workNs));
                return;
            }
            run.threads.step(best);
        }
    }

    /** Books what the core of a thread did up to now; called before the phase of the thread changes. */
    void accountOf(final int task) {
        account(set.cpuOf[task]);
    }

    private void account(final int cpu) {
        final int task = onCpu[cpu];
        final long since = sinceNs[cpu];
        sinceNs[cpu] = run.nowNs;
        if (task < 0 || since == run.nowNs) {
            return;
        }
        final boolean spins = run.threads.isSpinning(task);
        if (!spins) {
            run.threads.worked(task, run.nowNs - since);
        }
        if (run.trace != null) {
            run.trace.onCpu(cpu + 1, task, spins ? TraceSink.Activity.SPIN
                : run.threads.isInCpuSegment(task) ? TraceSink.Activity.CPU : TraceSink.Activity.HOST, since,
                run.nowNs);
        }
    }

    void finish() {
        for (int c = 0; c < onCpu.length; c++) {
            account(c);
        }
    }
}
