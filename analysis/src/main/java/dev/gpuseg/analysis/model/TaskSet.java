/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.HashSet;
import java.util.List;
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
     * The set that bounds and simulations count. With {@link Platform#coRunPercent} every window is longer by so much;
     * with a clock of {@link PlatformLimits} every device part; new contexts are stops of the GPU. What is counted is
     * not in the platform of the result any more.
     *
     * @return this set if it counts as declared
     * @throws InvalidModelException if a time leaves the range of the model
     */
    public TaskSet slowed() {
        final Platform counted = platform.counted();
        return counted.equals(platform) ? this : new TaskSet(id, counted, mode,
            tasks.stream().map(task -> task.slowed(platform)).toList(), chains);
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
