/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * What the scheduler must know of a task.
 *
 * @param taskId             0..{@link SchedulerConfig#maxTasks()}, small and dense; may be used again after removal
 * @param contextId          the context that it works in; it decides the GPU
 * @param priority           0 best effort, 1..99 real time, 99 highest
 * @param gpuPriority        what fixed priority compares, 1..99; 0 = same as {@code priority}. Replaced by the
 *                           resolved value
 * @param relativeDeadlineNs ns from release to deadline; 0 = none
 * @param budgetNs           longest time in ns that a segment may run, preempted time excluded; 0 = unlimited
 * @param optimistic         whether begins of this task may be pre-granted
 */
public record TaskParameters(int taskId, int contextId, int priority, int gpuPriority, long relativeDeadlineNs,
    long budgetNs, boolean optimistic) {

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of its range, or a best-effort task has a GPU priority
     */
    public TaskParameters {
        gpuPriority = resolveGpuPriority(taskId, priority, gpuPriority);
        requireNotNegative(taskId, "relativeDeadlineNs", relativeDeadlineNs);
        requireNotNegative(taskId, "budgetNs", budgetNs);
    }

    /**
     * Whether the task is a real-time one.
     *
     * @return true if its priority is 1..99
     */
    public boolean isRealTime() {
        return Priority.isRealTime(priority);
    }

    static int resolveGpuPriority(final int taskId, final int priority, final int gpuPriority) {
        if (!Priority.isValid(priority) || !Priority.isValid(gpuPriority)) {
            throw new IllegalArgumentException("task " + taskId + ": priority is " + priority + ", gpuPriority is "
                + gpuPriority + "; both must be 1..99 (99 highest) or 0");
        }
        if (Priority.isRealTime(gpuPriority) && !Priority.isRealTime(priority)) {
            throw new IllegalArgumentException("task " + taskId + ": gpuPriority is " + gpuPriority
                + " but priority is 0 (best effort); give the task a priority of 1..99 or a gpuPriority of 0");
        }
        return Priority.isRealTime(gpuPriority) ? gpuPriority : priority;
    }

    private static void requireNotNegative(final int taskId, final String name, final long value) {
        if (value < 0) {
            throw new IllegalArgumentException("task " + taskId + ": " + name + " is " + value
                + "; it must be 0 (none) or positive");
        }
    }
}
