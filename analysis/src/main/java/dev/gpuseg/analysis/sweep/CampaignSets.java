/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Small task sets that try every feature of the model: one to three cores, one or two GPUs, best-effort tasks,
 * deadlines below periods, release jitter, host parts that overlap device parts, idle time inside of windows, GPU
 * priorities that differ from CPU priorities, equal priorities, processes of several tasks,
 * and epsilon from nothing to a millisecond, jobs that end in a window, declared blocking. Set k of a seed is a
 * function of both.
 */
public final class CampaignSets {
    private static final int POINT = 1_000;
    private static final long[] EPSILON_NS = {0, 50_000, 200_000, 500_000, 1_000_000};
    private static final long IDLE_MAX_NS = 1_000_000;
    private static final long[] THETA_NS = {0, 50_000, 200_000};
    private static final long[] TIMESLICE_NS = {200_000, 1_000_000, 2_000_000};

    private CampaignSets() {
    }

    /**
     * One set.
     *
     * @param seed of the campaign
     * @param k    number of the set
     * @return the set
     */
    public static TaskSet generate(final long seed, final long k) {
        final SplittableRandom random = Seeds.random(seed, POINT, k);
        final int cpus = 1 + random.nextInt(3);
        final double load = 0.1 + 0.5 * random.nextDouble();
        final long thetaNs = THETA_NS[random.nextInt(THETA_NS.length)];
        final long epsilonNs = EPSILON_NS[random.nextInt(EPSILON_NS.length)];
        final Gpu gpu = new Gpu(epsilonNs, Math.max(0, epsilonNs - thetaNs), thetaNs,
            TIMESLICE_NS[random.nextInt(TIMESLICE_NS.length)]);
        final Experiment base = Experiment.published(Variant.AS_PUBLISHED);
        final Experiment experiment = new Experiment(base.variant(), base.utilisation(), cpus, 0, new Range(1, 4),
            Range.of(load), 1, new Range(0.3, 1), new Range(10, 60), new Range(1, 3), new Range(0.2, 2),
            new Range(0, random.nextBoolean() ? 0.3 : 0.9), random.nextInt(3) == 0 ? 0.3 : 0, random.nextInt(4) == 0
            ? 2 : 1,
            gpu, base.mode());
        final TaskSet plain = new TaskSetGenerator(experiment).generate(seed, POINT + 1, k);
        final boolean constrained = random.nextInt(3) == 0;
        final boolean late = random.nextInt(4) == 0;
        final boolean overlapping = random.nextInt(3) == 0;
        final boolean separate = random.nextInt(4) == 0;
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : plain.tasks()) {
            tasks.add(vary(random, task, constrained, late, overlapping));
        }
        assignDeadlineMonotonic(tasks);
        if (separate) {
            separateGpuPriorities(random, tasks, cpus);
        }
        final SplittableRandom more = Seeds.random(seed, POINT + 2, k);
        if (more.nextInt(4) == 0) {
            addIdleTime(more, tasks);
        }
        if (more.nextInt(3) == 0) {
            tie(more, tasks);
        }
        if (more.nextInt(4) == 0) {
            shareProcesses(more, tasks);
        }
        final SplittableRandom last = Seeds.random(seed, POINT + 3, k);
        if (last.nextInt(4) == 0) {
            endInWindows(last, tasks);
        }
        if (last.nextInt(5) == 0) {
            block(last, tasks);
        }
        return new TaskSet("c" + seed + "-" + k, plain.platform(), plain.mode(), tasks);
    }

    private static Task vary(final SplittableRandom random, final Task task, final boolean constrained,
        final boolean late,
        final boolean overlapping) {
        final List<Segment> segments = new ArrayList<>();
        for (final Segment segment : task.segments()) {
            if (overlapping && segment instanceof Segment.Gpu gpu && random.nextBoolean()) {
                final long longest = Math.max(gpu.hostNs(), gpu.deviceNs());
                final long shortest = Math.min(gpu.hostNs(), gpu.deviceNs());
                segments.add(new Segment.Gpu(gpu.hostNs(), gpu.deviceNs(), longest + random.nextLong(shortest + 1),
                    gpu.bursts()));
            } else {
                segments.add(segment);
            }
        }
        long deadline = task.periodNs();
        if (constrained) {
            deadline -= random.nextLong(deadline / 2);
        }
        final long jitter = late && random.nextBoolean() ? random.nextLong(deadline / 4) : 0;
        return task.withTimes(deadline, jitter, 0).withSegments(segments);
    }

    private static void assignDeadlineMonotonic(final List<Task> tasks) {
        final Integer[] order = realTimeOrder(tasks,
            Comparator.comparingLong((Integer i) -> tasks.get(i).deadlineNs()));
        for (int rank = 0; rank < order.length; rank++) {
            final int priority = order.length - rank;
            tasks.set(order[rank], tasks.get(order[rank]).withPriorities(priority, priority));
        }
    }

    /** Some tasks in each of two processes, the others in processes of their own; best-effort tasks rarely share. */
    private static void shareProcesses(final SplittableRandom random, final List<Task> tasks) {
        final boolean bestEffortToo = random.nextInt(4) == 0;
        for (int i = 0; i < tasks.size(); i++) {
            final int process = random.nextInt(3);
            tasks.set(i, tasks.get(i).inProcess(process == 0 || tasks.get(i).bestEffort() && !bestEffortToo ? null
                : "p" + process));
        }
    }

    /**
     * A set of a campaign: three of four of this class, every fourth one of {@link WitnessSets}.
     *
     * @param seed of the campaign
     * @param k    number of the set
     * @return the set
     */
    public static TaskSet mixed(final long seed, final long k) {
        return k % 4 == 3 ? WitnessSets.generate(seed, k) : generate(seed, k);
    }

    /** Some tasks wait for lower work that the set does not show. */
    private static void block(final SplittableRandom random, final List<Task> tasks) {
        for (int i = 0; i < tasks.size(); i++) {
            final Task task = tasks.get(i);
            if (random.nextBoolean()) {
                tasks.set(i, task.withTimes(task.deadlineNs(), task.jitterNs(), random.nextLong(task.deadlineNs()
                    / 8)));
            }
        }
    }

    /** Jobs whose first or last segment is a window: a boosted thread can then delay those above it until they end. */
    private static void endInWindows(final SplittableRandom random, final List<Task> tasks) {
        for (int i = 0; i < tasks.size(); i++) {
            final List<Segment> segments = new ArrayList<>(tasks.get(i).segments());
            final boolean windows = tasks.get(i).gpuSegmentCount() > 0;
            if (windows && random.nextBoolean()) {
                if (segments.get(segments.size() - 1) instanceof Segment.Cpu) {
                    segments.remove(segments.size() - 1);
                }
            }
            if (windows && random.nextInt(4) == 0 && segments.get(0) instanceof Segment.Cpu) {
                segments.remove(0);
            }
            tasks.set(i, tasks.get(i).withSegments(segments));
        }
    }

    /** Windows in which neither core nor GPU works for up to a millisecond. */
    private static void addIdleTime(final SplittableRandom random, final List<Task> tasks) {
        for (int i = 0; i < tasks.size(); i++) {
            final List<Segment> segments = new ArrayList<>();
            for (final Segment segment : tasks.get(i).segments()) {
                segments.add(segment instanceof Segment.Gpu gpu && random.nextBoolean() ? new Segment.Gpu(gpu.hostNs(),
                    gpu.deviceNs(), gpu.hostNs() + gpu.deviceNs() + random.nextLong(IDLE_MAX_NS), gpu.bursts())
                    : segment);
            }
            tasks.set(i, tasks.get(i).withSegments(segments));
        }
    }

    /**
     * Gives neighbours in the order of CPU priorities one priority; in half of the sets their GPU priorities stay
     * different. Where GPU priorities agree with the CPU priorities on every core before, they do so afterwards.
     */
    private static void tie(final SplittableRandom random, final List<Task> tasks) {
        final boolean onGpuToo = random.nextBoolean()
            && tasks.stream().allMatch(task -> task.priority() == task.gpuPriority());
        final Integer[] order = realTimeOrder(tasks,
            Comparator.comparingInt((Integer i) -> tasks.get(i).priority()).reversed());
        for (int rank = 1; rank < order.length; rank++) {
            if (random.nextInt(3) != 0) {
                final Task task = tasks.get(order[rank]);
                final int priority = tasks.get(order[rank - 1]).priority();
                tasks.set(order[rank], task.withPriorities(priority, onGpuToo ? priority : task.gpuPriority()));
            }
        }
    }

    /** Any order that agrees with the CPU priorities on every core. */
    private static void separateGpuPriorities(final SplittableRandom random, final List<Task> tasks, final int cpus) {
        final List<List<Integer>> byCpu = new ArrayList<>();
        for (int c = 0; c < cpus; c++) {
            byCpu.add(new ArrayList<>());
        }
        final Integer[] order = realTimeOrder(tasks,
            Comparator.comparingInt((Integer i) -> tasks.get(i).priority()).reversed());
        for (final int i : order) {
            byCpu.get(tasks.get(i).cpu() - 1).add(i);
        }
        int priority = order.length;
        while (priority > 0) {
            final List<Integer> core = byCpu.get(random.nextInt(cpus));
            if (!core.isEmpty()) {
                final int i = core.remove(0);
                tasks.set(i, tasks.get(i).withPriorities(tasks.get(i).priority(), priority));
                priority--;
            }
        }
    }

    private static Integer[] realTimeOrder(final List<Task> tasks, final Comparator<Integer> by) {
        final Integer[] order = new Integer[tasks.size()];
        Arrays.setAll(order, i -> i);
        return Arrays.stream(order).filter(i -> !tasks.get(i).bestEffort()).sorted(by).toArray(Integer[]::new);
    }
}
