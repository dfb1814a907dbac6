/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.function.LongFunction;

/**
 * By how much a set may change before the first deadline is at risk, found by bisection over the verdict of an
 * analysis. Factors are in thousandths: 1250 = every affected time may grow to 125 %. A factor below 1000 means that
 * the time must shrink to it.
 *
 * @param epsilonNs          largest epsilon, the same on every GPU, with which the set passes; empty if none does, or
 *                           no GPU
 * @param cpuPermille        largest factor for all CPU segments and host parts; {@link #UNBOUNDED} if there is no limit
 * @param gpuPermille        largest factor for all GPU segments, host parts included
 * @param taskCpuPermille    likewise for the CPU segments of one task, by task; -1 where a task has none
 * @param taskGpuPermille    likewise for the GPU segments of one task, by task; -1 where a task has none
 */
public record Sensitivity(OptionalLong epsilonNs, long cpuPermille, long gpuPermille, List<Long> taskCpuPermille,
    List<Long> taskGpuPermille) {
    /** The largest factor that the search tries. */
    public static final long UNBOUNDED = 1_000_000L;
    /** No factor, not even 0, helps. */
    public static final long NEVER = -2;
    /** Does not apply. */
    public static final long NONE = -1;

    private static final long ONE = 1000L;

    /** Copies the lists. */
    public Sensitivity {
        taskCpuPermille = List.copyOf(taskCpuPermille);
        taskGpuPermille = List.copyOf(taskGpuPermille);
    }

    /**
     * Searches.
     *
     * @param analysis whose verdict counts
     * @param set      every real-time task with a core and priorities
     * @return the limits
     */
    public static Sensitivity of(final Analysis analysis, final TaskSet set) {
        final boolean usesGpu = usesGpu(set);
        final OptionalLong epsilon = epsilonNs(analysis, set);
        final List<Long> taskCpu = new ArrayList<>();
        final List<Long> taskGpu = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            taskCpu.add(cpuPermille(analysis, set, i));
            taskGpu.add(gpuPermille(analysis, set, i));
        }
        return new Sensitivity(epsilon, largest(UNBOUNDED, f -> passes(analysis, scaled(set, -1, f, f, ONE))),
            usesGpu ? largest(UNBOUNDED, f -> passes(analysis, scaled(set, -1, ONE, f, f))) : NONE, taskCpu, taskGpu);
    }

    /**
     * Largest epsilon, the same on every GPU, with which a set passes.
     *
     * @param analysis whose verdict counts
     * @param set      every real-time task with a core and priorities
     * @return nanoseconds; empty if none does, or no task uses a GPU
     */
    public static OptionalLong epsilonNs(final Analysis analysis, final TaskSet set) {
        if (!usesGpu(set)) {
            return OptionalLong.empty();
        }
        long longest = 0;
        for (final Task task : set.tasks()) {
            longest = Math.max(longest, task.deadlineNs());
        }
        final long most = largest(longest, e -> passes(analysis, set.withPlatform(withEpsilon(set, e))));
        return most == NEVER ? OptionalLong.empty() : OptionalLong.of(most);
    }

    /**
     * Largest factor for the CPU segments of one task.
     *
     * @param analysis whose verdict counts
     * @param set      every real-time task with a core and priorities
     * @param index    the task's place in the set
     * @return thousandths, {@link #NEVER}, or {@link #NONE} where it has none
     */
    public static long cpuPermille(final Analysis analysis, final TaskSet set, final int index) {
        final Task task = set.tasks().get(index);
        return task.bestEffort() || task.cpuNs() == 0 ? NONE
            : largest(UNBOUNDED, f -> passes(analysis, scaled(set, index, f, ONE, ONE)));
    }

    /**
     * Largest factor for the GPU segments of one task, host parts included.
     *
     * @param analysis whose verdict counts
     * @param set      every real-time task with a core and priorities
     * @param index    the task's place in the set
     * @return thousandths, {@link #NEVER}, or {@link #NONE} where it has none
     */
    public static long gpuPermille(final Analysis analysis, final TaskSet set, final int index) {
        final Task task = set.tasks().get(index);
        return task.bestEffort() || task.gpuNs() == 0 ? NONE
            : largest(UNBOUNDED, f -> passes(analysis, scaled(set, index, ONE, f, f)));
    }

    private static boolean usesGpu(final TaskSet set) {
        return set.tasks().stream().anyMatch(t -> t.gpuSegmentCount() > 0);
    }

    /** Largest value in 0..limit that passes, by bisection; {@link #NEVER} if 0 does not. */
    private static long largest(final long limit, final LongFunction<Boolean> passes) {
        if (!passes.apply(0)) {
            return NEVER;
        }
        if (passes.apply(limit)) {
            return limit;
        }
        long good = 0;
        long bad = limit;
        while (bad - good > 1) {
            final long middle = good + (bad - good) / 2;
            if (passes.apply(middle)) {
                good = middle;
            } else {
                bad = middle;
            }
        }
        return good;
    }

    private static boolean passes(final Analysis analysis, final TaskSet set) {
        if (set != null && (!set.chains().isEmpty() || mayMiss(set))) {
            return analysis.analyse(set).schedulable();
        }
        return set != null && analysis.isSchedulable(analysis.needsPriorities() ? PreparedSet.of(set)
            : PreparedSet.withoutPriorities(set));
    }

    private static Platform withEpsilon(final TaskSet set, final long epsilonNs) {
        final List<Gpu> gpus = new ArrayList<>();
        for (final Gpu gpu : set.platform().gpus()) {
            gpus.add(gpu.withEpsilonNs(Math.min(epsilonNs, Durations.MAX_NS)));
        }
        return set.platform().withGpus(gpus);
    }

    /**
     * Task {@code only} (or every real-time task, if -1) with scaled parts; null if a time leaves the model's range.
     */
    private static TaskSet scaled(final TaskSet set, final int only, final long cpu, final long host,
        final long device) {
        final List<Task> tasks = new ArrayList<>();
        try {
            for (int i = 0; i < set.tasks().size(); i++) {
                final Task task = set.tasks().get(i);
                tasks.add(only == i || only < 0 && !task.bestEffort() ? scaled(task, cpu, host, device) : task);
            }
            return set.withTasks(tasks);
        } catch (final InvalidModelException | ArithmeticException e) {
            // longer than 2^53 ns: no deadline is that long
            return null;
        }
    }

    private static Task scaled(final Task task, final long cpu, final long host, final long device) {
        final List<Segment> segments = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            if (segment instanceof Segment.Gpu gpu) {
                final long newHost = times(gpu.hostNs(), host);
                final long newDevice = times(gpu.deviceNs(), device);
                final long overlap = gpu.hostNs() + gpu.deviceNs() - gpu.totalNs();
                final long newOverlap = Math.min(overlap, Math.min(newHost, newDevice));
                segments.add(new Segment.Gpu(newHost, newDevice, Math.addExact(newHost, newDevice) - newOverlap,
                    gpu.bursts()));
            } else if (segment instanceof Segment.Cpu part) {
                segments.add(new Segment.Cpu(times(part.durationNs(), cpu)));
            }
        }
        return task.withSegments(segments);
    }

    private static long times(final long ns, final long permille) {
        final long product = Math.multiplyExact(ns, permille);
        return product / ONE + (product % ONE == 0 ? 0 : 1);
    }

    private static boolean mayMiss(final TaskSet set) {
        return set.tasks().stream().anyMatch(task -> task.missLimit() != null);
    }
}
