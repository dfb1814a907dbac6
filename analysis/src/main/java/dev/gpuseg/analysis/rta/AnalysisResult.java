/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import java.util.List;

/**
 * The result of an analysis for a task set.
 *
 * <p>The bounds of a set that is not schedulable are conditional: each holds as long as the tasks without a bound
 * keep their deadlines.
 *
 * @param analysis    name of the analysis
 * @param taskSetId   id of the set
 * @param schedulable true if every real-time task keeps its deadline or the limit of its misses, and every chain its
 *                    limits
 * @param tasks       in the order of the set
 * @param chains      in the order of the set
 * @param misses      of the tasks that may miss deadlines, in the order of the set
 */
public record AnalysisResult(String analysis, String taskSetId, boolean schedulable, List<TaskResult> tasks,
    List<ChainResult> chains, List<MissBound> misses) {
    /** Copies the lists. */
    public AnalysisResult {
        tasks = List.copyOf(tasks);
        chains = List.copyOf(chains);
        misses = List.copyOf(misses);
    }

    /**
     * The bound of a task.
     *
     * @param set  the set that was analysed
     * @param name of a task
     * @return ns; null if it has none, or is not in the set
     */
    public Long boundOf(final TaskSet set, final String name) {
        for (int i = 0; i < tasks.size(); i++) {
            if (set.tasks().get(i).name().equals(name)) {
                return tasks.get(i).wcrtNs();
            }
        }
        return null;
    }

    /**
     * The result for a set in which no task may miss a deadline.
     *
     * @param analysis    name of the analysis
     * @param taskSetId   id of the set
     * @param schedulable true if every real-time task keeps its deadline, and every chain its limits
     * @param tasks       in the order of the set
     * @param chains      in the order of the set
     */
    public AnalysisResult(final String analysis, final String taskSetId, final boolean schedulable,
        final List<TaskResult> tasks, final List<ChainResult> chains) {
        this(analysis, taskSetId, schedulable, tasks, chains, List.of());
    }

    /**
     * The result for a set without chains.
     *
     * @param analysis    name of the analysis
     * @param taskSetId   id of the set
     * @param schedulable true if every real-time task keeps its deadline
     * @param tasks       in the order of the set
     */
    public AnalysisResult(final String analysis, final String taskSetId, final boolean schedulable,
        final List<TaskResult> tasks) {
        this(analysis, taskSetId, schedulable, tasks, List.of());
    }
}
