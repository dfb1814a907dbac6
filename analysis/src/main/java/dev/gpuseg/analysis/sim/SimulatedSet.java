/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.MissLimit;
import dev.gpuseg.analysis.model.Overload;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.SchedulerConfig;

/** A task set as arrays, indexed by tasks in file order, cores from 0 and GPUs. Immutable. */
final class SimulatedSet {
    final TaskSet set;
    final boolean busy;
    final int taskCount;
    final int cpuCount;
    final int gpuCount;

    final int[] cpuOf;
    /** -1 = the task has no GPU segment. */
    final int[] gpuOf;
    /** The first task of the same GPU and process: its number is that of the context. */
    final int[] contextOf;
    final boolean[] realTime;
    final int[] priority;
    final int[] gpuPriority;
    final long[] periodNs;
    final long[] deadlineNs;
    final long[] jitterNs;
    /** For how long a job waits for its declared blocking, outside of its windows. */
    final long[] blockingNs;
    /** Longest distance of two arrivals; 0 = not known. */
    final long[] maxPeriodNs;
    /** How rarely the task needs its declared times; null = any job may. */
    final Overload[] overload;
    /** How many of its jobs may be late; null = none. */
    final MissLimit[] missLimit;
    final int[][] cpuTasks;
    final int[][] gpuTasks;

    /** Segment k of task i is at segmentStart[i] + k: CPU segments have gpuSegment false and their length in hostNs. */
    final int[] segmentStart;
    final boolean[] gpuSegment;
    final long[] hostNs;
    final long[] overlapNs;
    /** Time within a window in which it needs neither the core nor the GPU. */
    final long[] idleNs;
    final long[] deviceNs;
    /** How often the device part becomes ready at most. */
    final int[] bursts;
    /** As declared. */
    final PlatformLimits limits;
    /** In thousandths, {@link PlatformLimits#CLOCK_MIN} or more: device parts take up to so many times as declared. */
    final int clockPermille;
    /** Longest time of a new context, and shortest one to the next; 0 = there are none. */
    final long newcomerNs;
    final long newcomerPeriodNs;
    final Platform declared;

    final long[] epsilonNs;
    final long[] thetaNs;
    final long[] timesliceNs;
    final long[] stallNs;
    final long[] stallPeriodNs;

    /**
     * Reads a set.
     *
     * @throws InvalidModelException if a core is missing, or the set is beyond the limits of the scheduler core
     */
    SimulatedSet(final TaskSet given) {
        declared = given.platform();
        limits = declared.limits();
        // the clock and new contexts are simulated, not counted as bounds count them; beside other work they are
        final boolean simulates = declared.space().isNone();
        set = simulates ? given : given.slowed();
        clockPermille = simulates ? Math.max(PlatformLimits.CLOCK_MIN, limits.clockPermille())
            : PlatformLimits.CLOCK_MIN;
        newcomerNs = simulates ? limits.newcomerNs() : 0;
        newcomerPeriodNs = simulates ? limits.newcomerPeriodNs() : 0;
        busy = set.mode() == WaitMode.BUSY;
        taskCount = set.tasks().size();
        cpuCount = set.platform().cpus();
        gpuCount = Math.max(1, set.platform().gpus().size());
        if (gpuCount > SchedulerConfig.GPUS_MAX) {
            throw new InvalidModelException("platform: there are " + gpuCount + " GPUs; the scheduler serves at most "
                + SchedulerConfig.GPUS_MAX);
        }
        final int n = taskCount;
        cpuOf = new int[n];
        overload = new Overload[n];
        missLimit = new MissLimit[n];
        gpuOf = new int[n];
        contextOf = new int[n];
        realTime = new boolean[n];
        priority = new int[n];
        gpuPriority = new int[n];
        periodNs = new long[n];
        deadlineNs = new long[n];
        jitterNs = new long[n];
        blockingNs = new long[n];
        maxPeriodNs = new long[n];
        segmentStart = new int[n + 1];
        int segments = 0;
        for (int i = 0; i < n; i++) {
            segments += set.tasks().get(i).segments().size();
        }
        gpuSegment = new boolean[segments];
        hostNs = new long[segments];
        overlapNs = new long[segments];
        idleNs = new long[segments];
        deviceNs = new long[segments];
        bursts = new int[segments];
        final int[] tasksOfCpu = new int[cpuCount];
        final int[] tasksOfGpu = new int[gpuCount];
        int next = 0;
        for (int i = 0; i < n; i++) {
            final Task task = set.tasks().get(i);
            if (task.cpu() == 0) {
                throw new InvalidModelException("task \"" + task.name() + "\": cpu is missing; write cpu: 1.."
                    + cpuCount);
            }
            readTask(i, task);
            tasksOfCpu[cpuOf[i]]++;
            if (gpuOf[i] >= 0) {
                tasksOfGpu[gpuOf[i]]++;
            }
            segmentStart[i] = next;
            for (final Segment part : task.segments()) {
                readSegment(next++, part);
            }
        }
        segmentStart[n] = next;
        cpuTasks = group(cpuOf, tasksOfCpu);
        gpuTasks = group(gpuOf, tasksOfGpu);
        epsilonNs = new long[gpuCount];
        thetaNs = new long[gpuCount];
        timesliceNs = new long[gpuCount];
        stallNs = new long[gpuCount];
        stallPeriodNs = new long[gpuCount];
        for (int g = 0; g < set.platform().gpus().size(); g++) {
            final Gpu gpu = set.platform().gpus().get(g);
            epsilonNs[g] = gpu.epsilonNs();
            thetaNs[g] = gpu.thetaNs();
            timesliceNs[g] = gpu.timesliceNs();
            stallNs[g] = gpu.stallNs();
            stallPeriodNs[g] = gpu.stallPeriodNs();
        }
    }

    private void readTask(final int i, final Task task) {
        cpuOf[i] = task.cpu() - 1;
        overload[i] = task.overload();
        missLimit[i] = task.missLimit();
        realTime[i] = !task.bestEffort();
        priority[i] = task.priority();
        gpuPriority[i] = task.gpuPriority();
        periodNs[i] = task.periodNs();
        deadlineNs[i] = task.deadlineNs();
        jitterNs[i] = task.jitterNs();
        blockingNs[i] = task.blockingNs();
        maxPeriodNs[i] = set.chains().maxPeriodNs().getOrDefault(task.name(), 0L);
        gpuOf[i] = task.gpuSegmentCount() > 0 ? task.gpu() : -1;
        contextOf[i] = i;
        for (int k = 0; k < i && task.process() != null && contextOf[i] == i; k++) {
            if (gpuOf[k] == gpuOf[i] && task.process().equals(set.tasks().get(k).process())) {
                contextOf[i] = k;
            }
        }
    }

    private void readSegment(final int at, final Segment part) {
        if (part instanceof Segment.Gpu g) {
            gpuSegment[at] = true;
            // alone: the device part starts when this much of the host part is done, the rest runs beside it
            hostNs[at] = Math.min(g.hostNs(), g.totalNs() - g.deviceNs());
            overlapNs[at] = g.hostNs() - hostNs[at];
            idleNs[at] = g.totalNs() - g.deviceNs() - hostNs[at];
            deviceNs[at] = g.deviceNs();
            bursts[at] = g.bursts();
        } else if (part instanceof Segment.Cpu c) {
            hostNs[at] = c.durationNs();
        }
    }

    String nameOf(final int task) {
        return set.tasks().get(task).name();
    }

    private static int[][] group(final int[] of, final int[] sizes) {
        final int[][] groups = new int[sizes.length][];
        for (int k = 0; k < sizes.length; k++) {
            groups[k] = new int[sizes[k]];
        }
        final int[] filled = new int[sizes.length];
        for (int i = 0; i < of.length; i++) {
            if (of[i] >= 0) {
                groups[of[i]][filled[of[i]]++] = i;
            }
        }
        return groups;
    }
}
