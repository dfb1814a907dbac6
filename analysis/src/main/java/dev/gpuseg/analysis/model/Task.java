/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.ArrayList;
import java.util.List;
import java.util.function.ToLongFunction;
import java.util.function.UnaryOperator;

/**
 * A sporadic task. All times in nanoseconds, 0..{@link Durations#MAX_NS}.
 *
 * @param name        unique in its set, not empty
 * @param cpu         core, from 1; 0 = not yet assigned
 * @param gpu         index of the GPU that all its GPU segments use, from 0; meaningless without GPU segments
 * @param periodNs    least distance of two arrivals, greater than 0
 * @param deadlineNs  relative to the arrival; greater than 0, at most the period
 * @param jitterNs    release jitter: a job may be released up to this long after its arrival; less than the deadline
 * @param blockingNs  longest time per job that the task waits for lower-priority work that the model does not show
 *                    (sections with interrupts or preemption off, locks of its own)
 * @param priority    1..99 with 99 highest, or 0: not yet assigned (or best effort)
 * @param gpuPriority priority of its GPU segments, 1..99, or 0 as above
 * @param bestEffort  true if it has no deadline that counts: it runs below every real-time task
 * @param process     name of its process: tasks of one process share one context on each GPU; null = a process of its
 *                    own
 * @param missLimit   how many of its jobs may be late; null = none
 * @param overload    how rarely it needs its declared times; null = any job may
 * @param reservePercent part of the GPU's multiprocessors that it has for itself, 0..{@link SpaceLimits#MAX_RESERVE}
 * @param segments    in the order of execution; at least one
 */
public record Task(String name, int cpu, int gpu, long periodNs, long deadlineNs, long jitterNs, long blockingNs,
    int priority, int gpuPriority, boolean bestEffort, String process, MissLimit missLimit, Overload overload,
    int reservePercent, List<Segment> segments) {
    /** Highest priority. */
    public static final int MAX_PRIORITY = 99;

    /** Most segments of a task. */
    public static final int MAX_SEGMENTS = 1024;

    /** Validates every field on its own and the sums of the segments. */
    public Task {
        if (name == null || name.isBlank()) {
            throw new InvalidModelException("task: the name is empty; give each task a name");
        }
        segments = List.copyOf(segments);
        final String who = "task \"" + name + "\": ";
        if (process != null && process.isBlank()) {
            throw new InvalidModelException(who + "process is empty; name it, or leave process out");
        }
        if (missLimit != null && bestEffort) {
            throw new InvalidModelException(who + "weakly_hard limits its misses but it is best effort, which has no "
                + "deadline that counts; leave one of the two out");
        }
        if (reservePercent < 0 || reservePercent > SpaceLimits.MAX_RESERVE) {
            throw new InvalidModelException(who + "reserve is " + reservePercent + "%; it must be 1%.."
                + SpaceLimits.MAX_RESERVE + "%");
        }
        if (reservePercent > 0 && bestEffort) {
            throw new InvalidModelException(who + "reserve is " + reservePercent + "% but it is best effort, which "
                + "has no part for itself; leave one of the two out");
        }
        if (overload != null && overload.periodNs() < periodNs) {
            throw new InvalidModelException(who + "overload: period is " + Durations.format(overload.periodNs())
                + ", shorter than the period " + Durations.format(periodNs) + " of the task; it must be at least that");
        }
        requireTime(who + "period", periodNs);
        requireTime(who + "deadline", deadlineNs);
        requireTime(who + "jitter", jitterNs);
        requireTime(who + "blocking", blockingNs);
        if (periodNs == 0) {
            throw new InvalidModelException(who + "period is 0; it must be positive, like 10ms");
        }
        if (deadlineNs == 0) {
            throw new InvalidModelException(who + "deadline is 0; it must be positive, like 10ms");
        }
        if (deadlineNs > periodNs) {
            throw new InvalidModelException(who + "deadline is " + Durations.format(deadlineNs)
                + ", longer than the period "
                + Durations.format(periodNs) + "; the analyses need deadline <= period");
        }
        if (jitterNs >= deadlineNs) {
            throw new InvalidModelException(who + "jitter is " + Durations.format(jitterNs)
                + "; it must be less than the deadline " + Durations.format(deadlineNs));
        }
        if (cpu < 0 || cpu > Platform.MAX_CPUS) {
            throw new InvalidModelException(who + "cpu is " + cpu + "; it must be 1.." + Platform.MAX_CPUS);
        }
        if (gpu < 0 || gpu >= Platform.MAX_GPUS) {
            throw new InvalidModelException(who + "gpu is " + gpu + "; it must be 0.." + (Platform.MAX_GPUS - 1));
        }
        requirePriority(who + "priority", priority);
        requirePriority(who + "gpu_priority", gpuPriority);
        if (bestEffort && (priority != 0 || gpuPriority != 0)) {
            throw new InvalidModelException(who + "priority is " + Math.max(priority, gpuPriority)
                + " but the task is best effort; leave one of the two out");
        }
        if (segments.isEmpty()) {
            throw new InvalidModelException(who + "there are no segments; write at least one, like {cpu: 1ms}");
        }
        if (segments.size() > MAX_SEGMENTS) {
            throw new InvalidModelException(who + "there are " + segments.size() + " segments; at most " + MAX_SEGMENTS
                + " are allowed");
        }
        long sum = 0;
        for (final Segment segment : segments) {
            final long span = segment instanceof Segment.Gpu g ? g.spanNs() : ((Segment.Cpu) segment).durationNs();
            sum += Math.min(span, Durations.MAX_NS + 1);
        }
        if (sum > Durations.MAX_NS || sum < 0) {
            throw new InvalidModelException(who + "its segments add up to more than 2^53 ns (about 104 days)"
                + "; write shorter times");
        }
    }

    /**
     * A task in a process of its own.
     *
     * @param name        as above
     * @param cpu         as above
     * @param gpu         as above
     * @param periodNs    as above
     * @param deadlineNs  as above
     * @param jitterNs    as above
     * @param blockingNs  as above
     * @param priority    as above
     * @param gpuPriority as above
     * @param bestEffort  as above
     * @param segments    as above
     */
    public Task(final String name, final int cpu, final int gpu, final long periodNs, final long deadlineNs,
        final long jitterNs, final long blockingNs, final int priority, final int gpuPriority,
        final boolean bestEffort, final List<Segment> segments) {
        this(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority, bestEffort, null,
            null, null, 0, segments);
    }

    /** Sum of the CPU segments, C; nanoseconds. */
    public long cpuNs() {
        long sum = 0;
        for (final Segment segment : segments) {
            if (segment instanceof Segment.Cpu cpuSegment) {
                sum = Math.addExact(sum, cpuSegment.durationNs());
            }
        }
        return sum;
    }

    /** Sum of the totals of the GPU segments, G; nanoseconds. */
    public long gpuNs() {
        return sumOfGpuSegments(Segment.Gpu::totalNs);
    }

    /** Sum of the host parts, G^m; nanoseconds. */
    public long hostNs() {
        return sumOfGpuSegments(Segment.Gpu::hostNs);
    }

    /** Sum of the device parts, G^e; nanoseconds. */
    public long deviceNs() {
        return sumOfGpuSegments(Segment.Gpu::deviceNs);
    }

    private long sumOfGpuSegments(final ToLongFunction<Segment.Gpu> part) {
        long sum = 0;
        for (final Segment segment : segments) {
            if (segment instanceof Segment.Gpu gpuSegment) {
                sum = Math.addExact(sum, part.applyAsLong(gpuSegment));
            }
        }
        return sum;
    }

    /** Number of GPU segments, eta (those of length zero count: they begin and end like any other); 0 or more. */
    public int gpuSegmentCount() {
        int count = 0;
        for (final Segment segment : segments) {
            if (segment instanceof Segment.Gpu) {
                count++;
            }
        }
        return count;
    }

    /**
     * The same task with other priorities.
     *
     * @param newPriority    CPU priority
     * @param newGpuPriority GPU priority
     * @return the changed copy
     */
    public Task withPriorities(final int newPriority, final int newGpuPriority) {
        return withRank(newPriority, newGpuPriority, bestEffort);
    }

    /**
     * The same task with other priorities, or as a best-effort task.
     *
     * @param newPriority    CPU priority, 0 if it becomes best effort
     * @param newGpuPriority GPU priority, 0 if it becomes best effort
     * @param newBestEffort  whether it runs below every real-time task
     * @return the changed copy
     */
    public Task withRank(final int newPriority, final int newGpuPriority, final boolean newBestEffort) {
        return new Task(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, newPriority, newGpuPriority,
            newBestEffort, process, missLimit, overload, reservePercent, segments);
    }

    /**
     * The same task on another core and GPU.
     *
     * @param newCpu core, from 1
     * @param newGpu GPU, from 0
     * @return the changed copy
     */
    public Task withPlacement(final int newCpu, final int newGpu) {
        return new Task(name, newCpu, newGpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority,
            bestEffort, process, missLimit, overload, reservePercent, segments);
    }

    /**
     * The same task with other times of arrival and waiting.
     *
     * @param newDeadlineNs relative deadline
     * @param newJitterNs   release jitter
     * @param newBlockingNs declared blocking
     * @return the changed copy
     */
    public Task withTimes(final long newDeadlineNs, final long newJitterNs, final long newBlockingNs) {
        return new Task(name, cpu, gpu, periodNs, newDeadlineNs, newJitterNs, newBlockingNs, priority, gpuPriority,
            bestEffort, process, missLimit, overload, reservePercent, segments);
    }

    /** A copy with other segments, in the order of execution. */
    public Task withSegments(final List<Segment> newSegments) {
        return new Task(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority, bestEffort,
            process, missLimit, overload, reservePercent, newSegments);
    }

    /**
     * The same task where its windows take as long as a platform says.
     *
     * @param platform whose slowdown by work beside the windows, and clock, count
     * @return the changed copy
     */
    public Task slowed(final Platform platform) {
        return withWindows(window -> window.slowed(platform));
    }

    /** The same task where each window has the GPU for some nanoseconds before its device part begins. */
    Task delayed(final long ns) {
        return ns == 0 ? this : withWindows(window -> window.delayed(ns));
    }

    private Task withWindows(final UnaryOperator<Segment.Gpu> change) {
        final List<Segment> changed = new ArrayList<>(segments.size());
        for (final Segment segment : segments) {
            changed.add(segment instanceof Segment.Gpu window ? change.apply(window) : segment);
        }
        return withSegments(changed);
    }

    /** The longest device part of its GPU segments; nanoseconds. */
    public long longestDeviceNs() {
        return segments.stream().mapToLong(s -> s instanceof Segment.Gpu g ? g.deviceNs() : 0).max().orElse(0);
    }

    /** A copy in the process of that name, or in one of its own if it is null. */
    public Task inProcess(final String newProcess) {
        return new Task(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority, bestEffort,
            newProcess, missLimit, overload, reservePercent, segments);
    }

    /**
     * The same task that may miss deadlines, or seldom needs its declared times.
     *
     * @param newMissLimit how many of its jobs may be late; null = none
     * @param newOverload  how rarely it needs its declared times; null = any job may
     * @return the changed copy
     */
    public Task withOverload(final MissLimit newMissLimit, final Overload newOverload) {
        return new Task(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority, bestEffort,
            process, newMissLimit, newOverload, reservePercent, segments);
    }

    /** A copy with a part of the multiprocessors for itself, percent; 0 = none. */
    public Task withReserve(final int percent) {
        return new Task(name, cpu, gpu, periodNs, deadlineNs, jitterNs, blockingNs, priority, gpuPriority, bestEffort,
            process, missLimit, overload, percent, segments);
    }

    /** Whether every job can be an overload job: they may come as often as jobs. */
    public boolean alwaysOverloads() {
        return overload != null && overload.periodNs() == periodNs;
    }

    static void requireTime(final String what, final long ns) {
        if (ns < 0) {
            throw new InvalidModelException(what + " is " + ns + " ns, a negative time; it must be 0 or more");
        }
        if (ns > Durations.MAX_NS) {
            throw new InvalidModelException(what + " is " + ns + " ns, longer than 2^53 ns (about 104 days)"
                + "; write a shorter time");
        }
    }

    private static void requirePriority(final String what, final int priority) {
        if (priority < 0 || priority > MAX_PRIORITY) {
            throw new InvalidModelException(what + " is " + priority + "; it must be 1..99 (99 highest)");
        }
    }
}
