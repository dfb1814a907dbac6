/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * A task set on its platform.
 *
 * @param id       names the set in results; not empty
 * @param platform where it runs
 * @param mode     what a thread does while the GPU works for it
 * @param tasks    in the order of the file; at least one, at most {@link #MAX_TASKS}
 * @param chains   of these tasks
 */
public record TaskSet(String id, Platform platform, WaitMode mode, List<Task> tasks, Chains chains) {
    /** Most tasks of a set. */
    public static final int MAX_TASKS = 10_000;

    /** Validates what concerns several tasks: names, cores, GPUs, chains. */
    public TaskSet {
        tasks = List.copyOf(tasks);
        if (id == null || id.isBlank()) {
            throw new InvalidModelException("task set: the id is empty; give the set an id");
        }
        if (tasks.isEmpty()) {
            throw new InvalidModelException("task set \"" + id + "\": there are no tasks; write at least one");
        }
        if (tasks.size() > MAX_TASKS) {
            throw new InvalidModelException("task set \"" + id + "\": there are " + tasks.size() + " tasks; at most "
                + MAX_TASKS + " are allowed");
        }
        final Set<String> names = new HashSet<>(tasks.size() * 2);
        for (final Task task : tasks) {
            if (!names.add(task.name())) {
                throw new InvalidModelException("task \"" + task.name()
                    + "\": the name occurs twice; names must be unique");
            }
            if (task.cpu() > platform.cpus()) {
                throw new InvalidModelException("task \"" + task.name() + "\": cpu is " + task.cpu()
                    + "; the platform has cores 1.." + platform.cpus());
            }
            if (task.gpuSegmentCount() > 0 && task.gpu() >= platform.gpus().size()) {
                throw new InvalidModelException("task \"" + task.name() + "\": gpu is " + task.gpu()
                    + (platform.gpus().isEmpty() ? "; the platform has none (write epsilon, or gpus)"
                        : "; the platform has GPUs 0.." + (platform.gpus().size() - 1)));
            }
        }
        chains.requireFit(tasks);
        requireReserves(id, platform, tasks);
    }

    /** Parts of the reserve fit together, and a process is inside with all its tasks or with none. */
    private static void requireReserves(final String id, final Platform platform, final List<Task> tasks) {
        final int asked = tasks.stream().mapToInt(Task::reservePercent).sum();
        if (asked > platform.space().reservePercent()) {
            throw new InvalidModelException("task set \"" + id + "\": its tasks have " + asked + "% for themselves, "
                + "and the platform " + (platform.space().isNone() ? "has no space; write space: {reserve: " + asked
                + "%, slowdown: 50%, in_flight: 2ms} into it"
                : "keeps " + platform.space().reservePercent() + "% free (space: reserve); ask for less"));
        }
        final long parts = tasks.stream().filter(task -> task.reservePercent() > 0).count();
        if (parts >= Platform.MAX_GPUS) {
            throw new InvalidModelException("task set \"" + id + "\": " + parts + " tasks have a part of the reserve; "
                + "at most " + (Platform.MAX_GPUS - 1) + " may");
        }
        final Map<String, Task> first = new HashMap<>();
        for (final Task task : tasks) {
            if (task.process() == null || task.gpuSegmentCount() == 0) {
                continue;
            }
            final Task other = first.putIfAbsent(task.process(), task);
            if (other != null && other.reservePercent() > 0 != task.reservePercent() > 0) {
                throw new InvalidModelException("task \"" + task.name() + "\": reserve is " + task.reservePercent()
                    + "%, and that of task \"" + other.name() + "\" of the same process \"" + task.process() + "\" is "
                    + other.reservePercent() + "%; give both a part or neither");
            }
        }
    }

    /**
     * A set without chains.
     *
     * @param id       names the set in results; not empty
     * @param platform where it runs
     * @param mode     what a thread does while the GPU works for it
     * @param tasks    in the order of the file
     */
    public TaskSet(final String id, final Platform platform, final WaitMode mode, final List<Task> tasks) {
        this(id, platform, mode, tasks, Chains.NONE);
    }

    /**
     * The set that bounds and simulations count. With a clock of {@link PlatformLimits} every device part is longer;
     * new contexts are stops of the GPU. With a {@link Platform#space} every window is longer, a task with a part of
     * the reserve has a GPU of its own, without update delay, and any other real-time window waits with the GPU for
     * what others have in flight. What is counted is not in the platform of the result any more.
     *
     * @return this set if it counts as declared
     * @throws InvalidModelException if a time leaves the range of the model
     */
    public TaskSet slowed() {
        final Platform counted = platform.counted();
        if (counted.equals(platform)) {
            return this;
        }
        final List<Task> slow = tasks.stream().map(task -> task.slowed(platform)).toList();
        return platform.space().isNone() ? new TaskSet(id, counted, mode, slow, chains) : divided(counted, slow);
    }

    /** Theorem 18 of {@code docs/space.md}. */
    private TaskSet divided(final Platform counted, final List<Task> slow) {
        final List<Gpu> gpus = new ArrayList<>(counted.gpus());
        final List<Task> placed = new ArrayList<>(slow.size());
        for (final Task task : slow) {
            if (task.reservePercent() > 0) {
                placed.add(task.withPlacement(task.cpu(), gpus.size()).withReserve(0));
                gpus.add(counted.gpus().get(0).alone());
            } else if (task.bestEffort()) {
                placed.add(task);
            } else {
                placed.add(task.delayed(Math.max(platform.space().inFlightNs(), slow.stream()
                    .filter(other -> !other.equals(task) && !other.bestEffort() && other.reservePercent() == 0)
                    .mapToLong(Task::longestDeviceNs).max().orElse(0))));
            }
        }
        return new TaskSet(id, counted.withGpus(gpus), mode, placed, chains);
    }

    /** A copy with other tasks, in file order. */
    public TaskSet withTasks(final List<Task> newTasks) {
        return new TaskSet(id, platform, mode, newTasks, chains);
    }

    /** A copy on another platform. */
    public TaskSet withPlatform(final Platform newPlatform) {
        return new TaskSet(id, newPlatform, mode, tasks, chains);
    }

    /** A copy in another wait mode. */
    public TaskSet withMode(final WaitMode newMode) {
        return new TaskSet(id, platform, newMode, tasks, chains);
    }

    /** A copy with other chains of its tasks. */
    public TaskSet withChains(final Chains newChains) {
        return new TaskSet(id, platform, mode, tasks, newChains);
    }
}
