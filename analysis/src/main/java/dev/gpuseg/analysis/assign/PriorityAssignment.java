/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.assign;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.GpuPrioritySearch;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/** Ways to give priorities to the real-time tasks of a set. Best-effort tasks keep priority 0. */
public enum PriorityAssignment {
    /** Shorter period, higher priority; ties in file order. */
    RM,
    /** Shorter deadline, higher priority; ties in file order. */
    DM,
    /**
     * Deadline monotonic; if the analysis refuses that, GPU priorities by the published search; if it refuses that for
     * a set with chains, exchanges of priorities.
     */
    AUDSLEY,
    /** The same with the frontier search for GPU priorities. */
    OPA;

    /**
     * Finds an assignment by its name.
     *
     * @param name {@code rm}, {@code dm}, {@code audsley} or {@code opa}
     * @return the assignment
     * @throws IllegalArgumentException if there is none of that name
     */
    public static PriorityAssignment of(final String name) {
        for (final PriorityAssignment assignment : values()) {
            if (assignment.name().toLowerCase(Locale.ROOT).equals(name)) {
                return assignment;
            }
        }
        throw new IllegalArgumentException("assignment '" + name + "' does not exist; known are rm, dm, audsley, opa");
    }

    /**
     * Assigns priorities, replacing those of the set.
     *
     * @param set      a core for every task
     * @param analysis decides whether a search is needed and what it accepts; only {@link #AUDSLEY} and {@link #OPA}
     *                 use it
     * @return the set with distinct priorities from 99 down; where a search fails, those of deadline-monotonic order.
     *     With chains, {@link #AUDSLEY} and {@link #OPA} look for an order that keeps their limits, too
     * @throws InvalidModelException if there are more real-time tasks than priorities
     */
    public TaskSet assign(final TaskSet set, final Analysis analysis) {
        final TaskSet monotonic = monotonic(set, this == RM);
        if (this == RM || this == DM) {
            return monotonic;
        }
        final TaskSet found = analysis.description().model().hasGpuPriorities() ? search(monotonic, analysis)
            : monotonic;
        if (set.chains().isEmpty() || !analysis.needsPriorities() || analysis.analyse(found).schedulable()) {
            return found;
        }
        final TaskSet repaired = ChainRepair.search(monotonic, analysis);
        return repaired == null ? found : repaired;
    }

    /** Looks at deadlines of tasks alone. */
    private TaskSet search(final TaskSet monotonic, final Analysis analysis) {
        final PreparedSet prepared = PreparedSet.of(monotonic);
        if (analysis.isSchedulable(prepared)) {
            return monotonic;
        }
        final int[] levels = GpuPrioritySearch.levels(prepared, analysis, this == AUDSLEY
            ? GpuPrioritySearch.Strategy.PUBLISHED : GpuPrioritySearch.Strategy.FRONTIER);
        return levels == null ? monotonic : withGpuLevels(monotonic, levels);
    }

    private static TaskSet monotonic(final TaskSet set, final boolean byPeriod) {
        final Integer[] order = new Integer[set.tasks().size()];
        Arrays.setAll(order, i -> i);
        // The sort is stable: ties keep the order of the file.
        Arrays.sort(order, Comparator.comparingLong(i -> byPeriod ? set.tasks().get(i).periodNs()
            : set.tasks().get(i).deadlineNs()));
        final int[] priorities = new int[order.length];
        int next = Task.MAX_PRIORITY;
        for (final int i : order) {
            if (set.tasks().get(i).bestEffort()) {
                continue;
            }
            if (next == 0) {
                throw new InvalidModelException("task set \"" + set.id() + "\": more than " + Task.MAX_PRIORITY
                    + " real-time tasks; distinct priorities are 1..99, so split the set or assign them in the file");
            }
            priorities[i] = next--;
        }
        final List<Task> tasks = new ArrayList<>(order.length);
        for (int i = 0; i < priorities.length; i++) {
            tasks.add(set.tasks().get(i).withPriorities(priorities[i], priorities[i]));
        }
        return set.withTasks(tasks);
    }

    /**
     * Levels become priorities from 99 down, or from 98 down if they would equal the CPU priorities: equal priorities
     * tell an analysis that there is one order for both resources, and it then uses the published form for that case.
     */
    private static TaskSet withGpuLevels(final TaskSet set, final int[] levels) {
        int highest = 0;
        for (final int level : levels) {
            highest = Math.max(highest, level);
        }
        int shift = Task.MAX_PRIORITY - highest;
        boolean same = true;
        for (int i = 0; i < levels.length; i++) {
            final Task task = set.tasks().get(i);
            same &= levels[i] == 0 || task.gpuSegmentCount() == 0 || task.priority() == levels[i] + shift;
        }
        if (same && shift > 0) {
            shift--;
        }
        final List<Task> tasks = new ArrayList<>(levels.length);
        for (int i = 0; i < levels.length; i++) {
            final Task task = set.tasks().get(i);
            tasks.add(levels[i] == 0 || task.gpuSegmentCount() == 0 ? task
                : task.withPriorities(task.priority(), levels[i] + shift));
        }
        return set.withTasks(tasks);
    }
}
