/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.SpaceLimits;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A task set as arrays, prepared once and shared by several analyses. The inner loops read nothing else.
 *
 * <p>Positions 0..{@link #realTimeCount}-1 are the real-time tasks from highest to lowest CPU priority (ties in file
 * order), the best-effort tasks follow. Times in nanoseconds. Immutable by convention: the package's analyses only
 * read it.
 */
public final class PreparedSet {
    final TaskSet set;
    final int count;
    final int realTimeCount;
    /** Position to index in the file. */
    final int[] index;
    final long[] period;
    final long[] deadline;
    final long[] jitter;
    final long[] blocking;
    final long[] cpuWork;
    final long[] gpuWork;
    final long[] host;
    final long[] device;
    /** Number of GPU segments. */
    final int[] eta;
    final int[] cpu;
    /** GPU of the task, or -1 if it has no GPU segment. */
    final int[] gpu;
    final int[] priority;
    final int[] gpuPriority;
    /** The GPU segments of position p are at segmentStart[p]..segmentStart[p+1]-1. */
    final int[] segmentStart;
    final long[] segmentHost;
    final long[] segmentDevice;
    final long[] segmentTotal;
    final int[] segmentBursts;
    /** As declared: what {@link #stall} counts already, too. */
    final PlatformLimits limits;
    /** As declared: the segments contain it already. */
    final SpaceLimits space;
    /** Whether a GPU is stopped by other things than new contexts. */
    final boolean declaredStalls;
    /** Epsilon of the GPU of the task; of a CPU-only task the largest epsilon that can delay it (see {@link #of}). */
    final long[] epsilon;
    final long[] theta;
    final long[] timeslice;
    final boolean separateGpuPriorities;
    final int gpuCount;
    /** By GPU: stops that the scheduler does not cause; 0 = none. Epsilon contains those that fall into an update. */
    final long[] stall;
    final long[] stallPeriod;
    final boolean stalls;
    /** By GPU: when it is available; null = always. */
    final Supply[] supply;
    /** A number for each context that several tasks share, all its tasks on one GPU; -1 = the task shares none. */
    final int[] context;
    /** Number of such contexts; 0 = nothing is shared. */
    final int contextCount;

    private PreparedSet(final TaskSet declared, final boolean needPriorities) {
        set = declared.slowed();
        limits = declared.platform().limits();
        space = declared.platform().space();
        declaredStalls = declared.platform().gpus().stream().anyMatch(g -> g.stallNs() > 0);
        final int n = set.tasks().size();
        count = n;
        index = new int[n];
        int realTime = 0;
        int bestEffort = n;
        for (int i = 0; i < n; i++) {
            if (set.tasks().get(i).bestEffort()) {
                continue;
            }
            index[realTime++] = i;
        }
        for (int i = n - 1; i >= 0; i--) {
            if (set.tasks().get(i).bestEffort()) {
                index[--bestEffort] = i;
            }
        }
        realTimeCount = realTime;
        gpuCount = set.platform().gpus().size();
        stall = new long[gpuCount];
        stallPeriod = new long[gpuCount];
        boolean anyStall = false;
        for (int g = 0; g < gpuCount; g++) {
            stall[g] = set.platform().gpus().get(g).stallNs();
            stallPeriod[g] = set.platform().gpus().get(g).stallPeriodNs();
            anyStall |= stall[g] > 0;
        }
        stalls = anyStall;
        supply = null;
        sortByPriority(set, index, realTime);
        period = new long[n];
        deadline = new long[n];
        jitter = new long[n];
        blocking = new long[n];
        cpuWork = new long[n];
        gpuWork = new long[n];
        host = new long[n];
        device = new long[n];
        eta = new int[n];
        cpu = new int[n];
        gpu = new int[n];
        priority = new int[n];
        gpuPriority = new int[n];
        segmentStart = new int[n + 1];
        epsilon = new long[n];
        theta = new long[n];
        timeslice = new long[n];
        int segments = 0;
        for (int p = 0; p < n; p++) {
            segments += set.tasks().get(index[p]).gpuSegmentCount();
        }
        segmentHost = new long[segments];
        segmentDevice = new long[segments];
        segmentTotal = new long[segments];
        segmentBursts = new int[segments];
        int next = 0;
        boolean separate = false;
        for (int p = 0; p < n; p++) {
            final Task task = set.tasks().get(index[p]);
            if (task.cpu() == 0) {
                throw new InvalidModelException("task \"" + task.name()
                    + "\": cpu is missing; write cpu: 1.." + set.platform().cpus() + " or let --partition choose");
            }
            if (needPriorities && !task.bestEffort() && (task.priority() == 0 || task.gpuPriority() == 0)) {
                throw new InvalidModelException("task \"" + task.name()
                    + "\": priority is missing; write priority: 1..99 or let --assign choose");
            }
            separate |= task.priority() != task.gpuPriority() && task.gpuSegmentCount() > 0;
            period[p] = task.periodNs();
            deadline[p] = task.deadlineNs();
            jitter[p] = task.jitterNs();
            blocking[p] = task.blockingNs();
            cpuWork[p] = task.cpuNs();
            cpu[p] = task.cpu();
            priority[p] = task.priority();
            gpuPriority[p] = task.gpuPriority();
            segmentStart[p] = next;
            for (final Segment segment : task.segments()) {
                if (segment instanceof Segment.Gpu g) {
                    segmentHost[next] = g.hostNs();
                    segmentDevice[next] = g.deviceNs();
                    segmentTotal[next] = g.totalNs();
                    segmentBursts[next] = g.bursts();
                    host[p] = Math.addExact(host[p], g.hostNs());
                    device[p] = Math.addExact(device[p], g.deviceNs());
                    gpuWork[p] = Math.addExact(gpuWork[p], g.totalNs());
                    next++;
                }
            }
            eta[p] = next - segmentStart[p];
            gpu[p] = eta[p] > 0 ? task.gpu() : -1;
        }
        segmentStart[n] = next;
        separateGpuPriorities = separate;
        for (int p = 0; p < n; p++) {
            if (gpu[p] >= 0) {
                final Gpu g = set.platform().gpus().get(gpu[p]);
                epsilon[p] = g.stalledEpsilonNs();
                theta[p] = g.thetaNs();
                timeslice[p] = g.timesliceNs();
            }
        }
        for (int p = 0; p < n; p++) {
            if (gpu[p] < 0) {
                epsilon[p] = epsilonOfCpuOnlyTask(p);
            }
        }
        context = new int[n];
        contextCount = numberContexts();
    }

    private int numberContexts() {
        Arrays.fill(context, -1);
        int next = 0;
        for (int p = 0; p < count; p++) {
            for (int q = 0; q < p && context[p] < 0; q++) {
                if (sharesContext(q, p)) {
                    context[q] = context[q] < 0 ? next++ : context[q];
                    context[p] = context[q];
                }
            }
        }
        return next;
    }

    private boolean sharesContext(final int a, final int b) {
        final String process = gpu[a] < 0 ? null : set.tasks().get(index[a]).process();
        return process != null && gpu[b] >= 0 && set.tasks().get(index[a]).gpu() == set.tasks().get(index[b]).gpu()
            && process.equals(set.tasks().get(index[b]).process());
    }

    /** The GPU that each position uses, and for each GPU its stops and when it is available. */
    private record Gpus(int[] of, long[] stall, long[] stallPeriod, Supply[] supply) {
    }

    private PreparedSet(final PreparedSet other, final int[] gpuPriorities, final boolean separate, final Gpus gpus) {
        set = other.set;
        count = other.count;
        realTimeCount = other.realTimeCount;
        index = other.index;
        period = other.period;
        deadline = other.deadline;
        jitter = other.jitter;
        blocking = other.blocking;
        cpuWork = other.cpuWork;
        gpuWork = other.gpuWork;
        host = other.host;
        device = other.device;
        eta = other.eta;
        cpu = other.cpu;
        gpu = gpus.of();
        priority = other.priority;
        gpuPriority = gpuPriorities;
        segmentStart = other.segmentStart;
        segmentHost = other.segmentHost;
        segmentDevice = other.segmentDevice;
        segmentTotal = other.segmentTotal;
        segmentBursts = other.segmentBursts;
        limits = other.limits;
        space = other.space;
        declaredStalls = other.declaredStalls;
        epsilon = other.epsilon;
        theta = other.theta;
        timeslice = other.timeslice;
        separateGpuPriorities = separate;
        gpuCount = gpus.stall().length;
        stall = gpus.stall();
        stallPeriod = gpus.stallPeriod();
        stalls = other.stalls;
        supply = gpus.supply();
        context = other.context;
        contextCount = other.contextCount;
    }

    /**
     * The same set with a separate GPU for each pair of GPU and partition, available only in the windows of the
     * partition ({@code docs/partitions.md}). Each opening loses the time of two updates.
     *
     * @param table     the windows, of every GPU
     * @param partition of each position
     */
    PreparedSet partitioned(final TimePartitions table, final int[] partition) {
        final int[] virtual = new int[count];
        final List<Supply> supplies = new ArrayList<>();
        final List<int[]> pairs = new ArrayList<>();
        for (int p = 0; p < count; p++) {
            virtual[p] = -1;
            for (int v = 0; gpu[p] >= 0 && v < pairs.size(); v++) {
                if (pairs.get(v)[0] == gpu[p] && pairs.get(v)[1] == partition[p]) {
                    virtual[p] = v;
                }
            }
            if (gpu[p] >= 0 && virtual[p] < 0) {
                virtual[p] = pairs.size();
                pairs.add(new int[] {gpu[p], partition[p]});
                supplies.add(Supply.of(table, partition[p], Math.multiplyExact(2, epsilon[p])));
            }
        }
        final long[] virtualStall = new long[pairs.size()];
        final long[] virtualPeriod = new long[pairs.size()];
        for (int v = 0; v < virtualStall.length; v++) {
            virtualStall[v] = stall[pairs.get(v)[0]];
            virtualPeriod[v] = stallPeriod[pairs.get(v)[0]];
        }
        return new PreparedSet(this, gpuPriority, separateGpuPriorities,
            new Gpus(virtual, virtualStall, virtualPeriod, supplies.toArray(new Supply[0])));
    }

    /** When the GPU of a task is available; null = always, or the task needs none. */
    Supply supplyOf(final int p) {
        return supply == null || gpu[p] < 0 ? null : supply[gpu[p]];
    }

    /** The same set with GPU priorities of its own; the array is kept, and a search may change it. */
    PreparedSet withGpuPriorities(final int[] gpuPriorities) {
        return new PreparedSet(this, gpuPriorities, true, new Gpus(gpu, stall, stallPeriod, supply));
    }

    /**
     * Prepares a set for the fixed-priority analyses.
     *
     * <p>The published blocking term charges one update at the start of every job, also of a CPU-only job. Each GPU has
     * its own updates; a CPU-only task is charged the largest epsilon among the GPUs that the set uses. If no task uses
     * a GPU, it is charged the largest epsilon of the platform, as published: removing the last GPU task of a set then
     * does not change the verdict.
     *
     * @param set every task with a core, every real-time task with priorities
     * @return the arrays
     * @throws InvalidModelException if a core or priority is missing
     */
    public static PreparedSet of(final TaskSet set) {
        return new PreparedSet(set, true);
    }

    /**
     * Prepares a set for analyses that need no priorities (EDF), or before an assignment.
     *
     * @param set every task with a core
     * @return the arrays
     * @throws InvalidModelException if a core is missing
     */
    public static PreparedSet withoutPriorities(final TaskSet set) {
        return new PreparedSet(set, false);
    }

    /** The set that was prepared, see {@link TaskSet#slowed}. */
    public TaskSet taskSet() {
        return set;
    }

    /**
     * True if task h precedes task i on the CPU: higher priority, or equal (equal tasks precede each other).
     *
     * @param h position
     * @param i position
     * @return whether h may preempt or delay i
     */
    boolean isCpuHigher(final int h, final int i) {
        return h != i && h < realTimeCount && (i >= realTimeCount || !Priority.isHigherThan(priority[i], priority[h]));
    }

    /**
     * True if task h precedes task i on the GPU that both use.
     *
     * @param h position
     * @param i position
     * @return whether h may preempt or delay i
     */
    boolean isGpuHigher(final int h, final int i) {
        return h != i && gpu[h] >= 0 && gpu[h] == gpu[i] && h < realTimeCount
            && (i >= realTimeCount || !Priority.isHigherThan(gpuPriority[i], gpuPriority[h]));
    }

    /**
     * Hypothesis M6 of {@code docs/window.md}: of two real-time tasks of one core and GPU, the one with the higher CPU
     * priority has the higher GPU priority. Equal GPU priorities are not enough, because the earlier begin would go
     * first. Tasks of equal CPU priority may have any GPU priorities.
     *
     * @return one line that names the first pair that breaks it, and the remedy; empty if none does
     */
    String orderConflict() {
        if (!separateGpuPriorities) {
            return "";
        }
        for (int h = 0; h < realTimeCount; h++) {
            for (int i = h + 1; i < realTimeCount; i++) {
                if (gpu[h] >= 0 && gpu[h] == gpu[i] && cpu[h] == cpu[i]
                    && Priority.isHigherThan(priority[h], priority[i])
                    && !Priority.isHigherThan(gpuPriority[h], gpuPriority[i])) {
                    return "tasks \"" + nameOf(h) + "\" (priority " + priority[h] + ", gpu_priority " + gpuPriority[h]
                        + ") and \"" + nameOf(i) + "\" (priority " + priority[i] + ", gpu_priority " + gpuPriority[i]
                        + ") share core " + cpu[h] + " and a GPU, and their orders there differ; give \"" + nameOf(h)
                        + "\" the higher gpu_priority too, or leave gpu_priority out";
                }
            }
        }
        return "";
    }

    /**
     * Hypothesis M10 of {@code docs/window.md}: a real-time task shares its GPU context, which is all work of a process
     * on one GPU, with no other task, or with real-time tasks alone and the bound contains the waiting for them
     * ({@code docs/processes.md}). Partitions do not separate tasks of a process.
     *
     * @param contained whether the bound contains the waiting for real-time tasks of the same process
     * @param why       why it does not; one clause
     * @return one line that names the first pair that breaks it, and the remedy; empty if none does
     */
    String processConflict(final boolean contained, final String why) {
        for (int h = 0; contextCount > 0 && h < realTimeCount; h++) {
            for (int i = h + 1; context[h] >= 0 && i < count; i++) {
                if (context[i] == context[h] && !(contained && i < realTimeCount)) {
                    return "tasks \"" + nameOf(h) + "\" and \"" + nameOf(i) + "\" share process \""
                        + set.tasks().get(index[h]).process() + "\", hence one GPU context, in which neither can be "
                        + "preempted for the other" + (i < realTimeCount ? "; " + why
                        : "; \"" + nameOf(i) + "\" is best effort, so that its windows have no bounded length")
                        + ": run them in different processes, or use a gate (level 1)";
                }
            }
        }
        return "";
    }

    /** One clause that names the processes of several real-time tasks; empty if there are none. */
    String sharedProcesses() {
        final StringBuilder names = new StringBuilder();
        for (int c = 0; c < contextCount; c++) {
            for (int p = 0; p < realTimeCount; p++) {
                if (context[p] == c) {
                    names.append(names.isEmpty() ? "" : ", ").append('"').append(set.tasks().get(index[p]).process())
                        .append('"');
                    break;
                }
            }
        }
        return names.toString();
    }

    /**
     * Hypothesis M5 of {@code docs/window.md} for equal CPU priorities: two threads of one core and GPU that spin can
     * wait for each other without end, if the kernel does not preempt the one for the other.
     *
     * @return one line that names the first pair that breaks it, and the remedy; empty if none does
     */
    String spinConflict() {
        for (int h = 0; h < realTimeCount; h++) {
            for (int i = h + 1; i < realTimeCount && priority[i] == priority[h]; i++) {
                if (gpu[h] >= 0 && gpu[h] == gpu[i] && cpu[h] == cpu[i]) {
                    return "tasks \"" + nameOf(h) + "\" and \"" + nameOf(i) + "\" share core " + cpu[h]
                        + ", a GPU and priority " + priority[h] + ", and their threads spin: the one that spins for "
                        + "the GPU can keep the core from the one that has it, without end; give them different "
                        + "priorities, or use mode: suspend";
                }
            }
        }
        return "";
    }

    private String nameOf(final int p) {
        return set.tasks().get(index[p]).name();
    }

    private long epsilonOfCpuOnlyTask(final int p) {
        long largest = -1;
        for (int h = 0; h < count; h++) {
            if (h != p && gpu[h] >= 0) {
                largest = Math.max(largest, epsilon[h]);
            }
        }
        if (largest < 0) {
            for (final Gpu g : set.platform().gpus()) {
                largest = Math.max(largest, g.stalledEpsilonNs());
            }
        }
        return Math.max(0, largest);
    }

    /** Insertion sort: stable, in place, and the sets are small or already sorted. */
    private static void sortByPriority(final TaskSet set, final int[] index, final int length) {
        for (int i = 1; i < length; i++) {
            final int moved = index[i];
            final int key = set.tasks().get(moved).priority();
            int j = i - 1;
            while (j >= 0 && Priority.isHigherThan(key, set.tasks().get(index[j]).priority())) {
                index[j + 1] = index[j];
                j--;
            }
            index[j + 1] = moved;
        }
    }
}
