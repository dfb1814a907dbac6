/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.core.Priority;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/**
 * The lowest {@code boost_priority} of each real-time task with windows that keeps hypothesis M8' ({@code
 * docs/boost.md}): above all priorities of its core, and in their order.
 *
 * @param byName   priorities of SCHED_FIFO by the names of the tasks, in the order of the file
 * @param conflict why there are none, in one line; empty if there are
 */
public record BoostPriorities(Map<String, Integer> byName, String conflict) {
    /**
     * Chooses.
     *
     * @param set every real-time task with a core and a priority
     * @return the priorities
     */
    public static BoostPriorities of(final TaskSet set) {
        final Map<String, Integer> byName = new LinkedHashMap<>();
        for (final Task task : set.tasks()) {
            if (!task.bestEffort() && task.gpuSegmentCount() > 0) {
                final int boost = boostOf(task, set.tasks());
                if (!Priority.isValid(boost)) {
                    return new BoostPriorities(Map.of(), "core " + task.cpu() + " has no priorities left above "
                        + highest(task.cpu(), set.tasks()) + " for the boosts of its tasks with windows, \""
                        + task.name() + "\" would need " + boost + "; give the tasks of the core lower priorities");
                }
                byName.put(task.name(), boost);
            }
        }
        return new BoostPriorities(byName, "");
    }

    private static int highest(final int cpu, final List<Task> tasks) {
        int highest = Priority.BEST_EFFORT;
        for (final Task task : tasks) {
            if (task.cpu() == cpu && !task.bestEffort() && Priority.isHigherThan(task.priority(), highest)) {
                highest = task.priority();
            }
        }
        return highest;
    }

    private static int boostOf(final Task task, final List<Task> tasks) {
        final TreeSet<Integer> upTo = new TreeSet<>(Comparator.reverseOrder());
        for (final Task other : tasks) {
            if (other.cpu() == task.cpu() && !other.bestEffort() && other.gpuSegmentCount() > 0
                && !Priority.isHigherThan(other.priority(), task.priority())) {
                upTo.add(other.priority());
            }
        }
        return highest(task.cpu(), tasks) + upTo.size();
    }

    /** The choice in words, such as {@code camera 82, lidar 81}; empty if there is none. */
    public String text() {
        final List<String> parts = new ArrayList<>();
        byName.forEach((name, boost) -> parts.add(name + " " + boost));
        return String.join(", ", parts);
    }
}
