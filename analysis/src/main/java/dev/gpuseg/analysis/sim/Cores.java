/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.core.Priority;
import java.util.Arrays;
import java.util.SplittableRandom;

/** The cores: partitioned and preemptive, each serves the first of its threads that can run. */
final class Cores {
    private static final long SALT = 0x5254L;

    private final Run run;
    private final SimulatedSet set;
    private final Threads threads;
    private final int[] cpuOf;
    private final int[][] cpuTasks;
    private final boolean[] realTime;
    private final int[] priority;
    private final int[] onCpu;
    private final long[] sinceNs;
    private final boolean[] dirty;
    /** Whether a thread is in the queue of its core, and its place among threads of its priority. */
    private final boolean[] queued;
    private final long[] place;
    private long head;
    private long tail;
    /** Segments of real-time tasks alone keep their GPU until they end. */
    private boolean preemptive;
    private boolean boosts;
    private boolean hasCeiling;
    private boolean byPriority;
    /** What real-time threads may use of a core in a period of it; null = no core is throttled. */
    private long[] runtimeNs;
    private long throttlePeriodNs;
    private final long[] usedNs;
    private final long[] periodEndNs;
    private final boolean[] out;
    private final long[] throttled;

    Cores(final Run run) {
        this.run = run;
        set = run.set;
        threads = run.threads;
        cpuOf = set.cpuOf;
        cpuTasks = set.cpuTasks;
        realTime = set.realTime;
        priority = set.priority;
        onCpu = new int[set.cpuCount];
        sinceNs = new long[set.cpuCount];
        dirty = new boolean[set.cpuCount];
        queued = new boolean[set.taskCount];
        place = new long[set.taskCount];
        usedNs = new long[set.cpuCount];
        periodEndNs = new long[set.cpuCount];
        out = new boolean[set.cpuCount];
        throttled = new long[set.cpuCount];
    }

    void reset() {
        Arrays.fill(onCpu, -1);
        Arrays.fill(dirty, false);
        Arrays.fill(sinceNs, 0);
        Arrays.fill(queued, false);
        head = 0;
        tail = 0;
        hasCeiling = run.options.hold() == SimulationOptions.Hold.CEILING;
        boosts = hasCeiling || run.options.hold() == SimulationOptions.Hold.BOOST;
        byPriority = run.options.cpuPolicy() == SimulationOptions.CpuPolicy.FP;
        Arrays.fill(usedNs, 0);
        Arrays.fill(out, false);
        Arrays.fill(throttled, 0);
        Arrays.fill(periodEndNs, runtimeNs == null ? EventQueue.NEVER
            : new SplittableRandom(run.options.seed() ^ SALT).nextLong(throttlePeriodNs) + 1);
    }

    /** As {@link Simulator#setThrottling} says. */
    void throttling(final long periodNs, final long[] ofCores) {
        throttlePeriodNs = periodNs;
        runtimeNs = ofCores == null ? null : ofCores.clone();
    }

    /** In how many of its periods a core was throttled. */
    long throttled(final int cpu) {
        return throttled[cpu];
    }

    /** Whether the GPU's policy can preempt what was granted. */
    void preemptive(final boolean can) {
        preemptive = can;
    }

    /** Something changed for the core of a task. */
    void touch(final int task) {
        dirty[cpuOf[task]] = true;
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
        return threads.isInWindow(task) && (hasCeiling ? realTime[task]
            : run.segments.holdsGpu(task) && (realTime[task] || !preemptive));
    }

    /** A boost is over: the kernel puts a thread whose priority is lowered at the head of its new queue. */
    void boostEnds(final int task) {
        if (boosts) {
            head--;
            place[task] = head;
        }
    }

    /** Whether a thread can use its core; if it has woken up, it goes to the tail of the queue of its priority. */
    private boolean isQueued(final int task) {
        final boolean runnable = threads.isRunnable(task);
        if (runnable && !queued[task]) {
            tail++;
            place[task] = tail;
        }
        queued[task] = runnable;
        return runnable;
    }

    /**
     * True if a goes before b on their core. Equal ones: as SCHED_FIFO and SCHED_DEADLINE have it, the one that has
     * been in the queue for longer; a thread that was preempted keeps its place.
     */
    private boolean isBefore(final int a, final int b) {
        if (boosts) {
            final boolean boostedA = isBoosted(a);
            if (boostedA != isBoosted(b)) {
                return boostedA;
            }
        }
        if (realTime[a] != realTime[b]) {
            return realTime[a];
        }
        if (byPriority && priority[a] != priority[b]) {
            return Priority.isHigherThan(priority[a], priority[b]);
        }
        final long arrivalA = threads.arrivalNs(a);
        final long arrivalB = threads.arrivalNs(b);
        if (!byPriority && realTime[a]) {
            final long deadlineA = arrivalA + set.deadlineNs[a];
            final long deadlineB = arrivalB + set.deadlineNs[b];
            if (deadlineA != deadlineB) {
                return deadlineA < deadlineB;
            }
        }
        if (realTime[a]) {
            return place[a] < place[b];
        }
        return arrivalA != arrivalB ? arrivalA < arrivalB : a < b;
    }

    private void settle(final int cpu) {
        account(cpu);
        while (true) {
            int best = first(cpu, false);
            if (best >= 0 && isThrottled(cpu, best)) {
                best = first(cpu, true);
            }
            onCpu[cpu] = best;
            if (best >= 0) {
                threads.onCore(best);
            }
            if (best < 0 || threads.isSpinning(best)) {
                run.queue.set(run.cpuSource + cpu, throttlesNs(cpu, best));
                return;
            }
            final long workNs = threads.workNs(best);
            if (workNs > 0) {
                run.queue.set(run.cpuSource + cpu, Math.min(Math.addExact(run.nowNs, workNs), throttlesNs(cpu, best)));
                return;
            }
            threads.step(best);
        }
    }

    /** The thread that goes first among all of a core, or among its best-effort threads; -1 if there is none. */
    private int first(final int cpu, final boolean bestEffort) {
        int best = -1;
        for (final int task : cpuTasks[cpu]) {
            if (isQueued(task) && !(bestEffort && realTime[task]) && (best < 0 || isBefore(task, best))) {
                best = task;
            }
        }
        return best;
    }

    /** Whether a thread needs time of its core that the kernel does not give it now; what takes no time is done. */
    private boolean isThrottled(final int cpu, final int task) {
        if (runtimeNs == null || !realTime[task] || usedNs[cpu] < runtimeNs[cpu]
            || !threads.isSpinning(task) && threads.workNs(task) == 0) {
            return false;
        }
        throttled[cpu] += out[cpu] ? 0 : 1;
        out[cpu] = true;
        return true;
    }

    /** When the kernel looks at a core again on which a thread runs, -1 = none. */
    private long throttlesNs(final int cpu, final int task) {
        if (runtimeNs == null || !out[cpu] && (task < 0 || !realTime[task])) {
            return EventQueue.NEVER;
        }
        final long leftNs = out[cpu] ? Long.MAX_VALUE : runtimeNs[cpu] - usedNs[cpu];
        return leftNs < periodEndNs[cpu] - run.nowNs ? run.nowNs + leftNs : periodEndNs[cpu];
    }

    /** Books what real-time threads have used of a core; a period that is over is forgotten. */
    private void use(final int cpu, final long ns) {
        if (runtimeNs == null) {
            return;
        }
        usedNs[cpu] += ns;
        if (run.nowNs >= periodEndNs[cpu]) {   // a real-time thread never runs across the end of a period unseen
            periodEndNs[cpu] += ((run.nowNs - periodEndNs[cpu]) / throttlePeriodNs + 1) * throttlePeriodNs;
            usedNs[cpu] = 0;
            out[cpu] = false;
        }
    }

    /** Books what the core of a thread did up to now; called before the phase of the thread changes. */
    void accountOf(final int task) {
        account(cpuOf[task]);
    }

    private void account(final int cpu) {
        final int task = onCpu[cpu];
        final long since = sinceNs[cpu];
        sinceNs[cpu] = run.nowNs;
        use(cpu, task >= 0 && realTime[task] ? run.nowNs - since : 0);
        if (task < 0 || since == run.nowNs) {
            return;
        }
        final boolean spins = threads.isSpinning(task);
        if (!spins) {
            threads.worked(task, run.nowNs - since);
        }
        if (run.trace != null) {
            run.trace.onCpu(cpu + 1, task, spins ? TraceSink.Activity.SPIN
                : threads.isInCpuSegment(task) ? TraceSink.Activity.CPU : TraceSink.Activity.HOST, since,
                run.nowNs);
        }
    }

    void finish() {
        for (int c = 0; c < onCpu.length; c++) {
            account(c);
        }
    }
}
