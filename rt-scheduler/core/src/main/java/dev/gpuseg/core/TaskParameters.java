/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Objects;

/**
 * What the scheduler must know of a task.
 *
 * @param taskId             0..{@link SchedulerConfig#maxTasks()}, small and dense; may be used again after removal
 * @param contextId          the context that it works in; it decides the GPU
 * @param priority           0 best effort, 1..99 real time, 99 highest
 * @param gpuPriority        what fixed priority compares, 1..99; 0 = same as {@code priority}. Replaced by the
 *                           resolved value
 * @param relativeDeadlineNs ns from release to deadline; 0 = none
 * @param budgetNs           longest time in ns that a segment may hold the GPU, preempted time excluded; 0 = unlimited
 * @param optimistic         whether begins of this task may be pre-granted
 * @param overrun            what follows when a budget is used up
 * @param windowNs           longest time in ns from grant to end, preempted time included; 0 = unlimited
 * @param partition          time partition, 0..{@link TimePartitions#PARTITIONS_MAX}; 0 = none. All tasks of a context
 *                           have the same; ignored by policies without partitions
 * @param account            whose share of real-time work it uses, see {@link SegmentScheduler#setShare}; 0 = nobody's
 * @param reserved           whether it has room of its own on the GPU, so that it waits for nobody and nobody for it
 */
public record TaskParameters(int taskId, int contextId, int priority, int gpuPriority, long relativeDeadlineNs,
    long budgetNs, boolean optimistic, OverrunAction overrun, long windowNs, int partition,
    int account, boolean reserved) {

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of its range, or a best-effort task has a GPU priority
     * @throws NullPointerException     if the overrun action is null
     */
    public TaskParameters {
        gpuPriority = resolveGpuPriority(taskId, priority, gpuPriority);
        requireNotNegative(taskId, "relativeDeadlineNs", relativeDeadlineNs);
        requireNotNegative(taskId, "budgetNs", budgetNs);
        requireNotNegative(taskId, "windowNs", windowNs);
        Objects.requireNonNull(overrun, "overrun");
        if (partition < 0 || partition > TimePartitions.PARTITIONS_MAX) {
            throw new IllegalArgumentException("task " + taskId + ": partition is " + partition + "; it must be 0 "
                + "(none) .. " + TimePartitions.PARTITIONS_MAX);
        }
        requireNotNegative(taskId, "account", account);
    }

    /**
     * A task that uses nobody's share.
     *
     * @param taskId             as above
     * @param contextId          as above
     * @param priority           as above
     * @param gpuPriority        as above
     * @param relativeDeadlineNs as above
     * @param budgetNs           as above
     * @param optimistic         as above
     * @param overrun            as above
     * @param windowNs           as above
     * @param partition          as above
     */
    public TaskParameters(final int taskId, final int contextId, final int priority, final int gpuPriority,
        final long relativeDeadlineNs, final long budgetNs, final boolean optimistic, final OverrunAction overrun,
        final long windowNs, final int partition) {
        this(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic, overrun, windowNs,
            partition, 0, false);
    }

    /**
     * A task without a partition and without a limit of its window, whose overruns are reported and no more.
     *
     * @param taskId             as above
     * @param contextId          as above
     * @param priority           as above
     * @param gpuPriority        as above
     * @param relativeDeadlineNs as above
     * @param budgetNs           as above
     * @param optimistic         as above
     */
    public TaskParameters(final int taskId, final int contextId, final int priority, final int gpuPriority,
        final long relativeDeadlineNs, final long budgetNs, final boolean optimistic) {
        this(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic, OverrunAction.NOTIFY,
            0, 0);
    }

    /** A copy with another action when a budget is used up. */
    public TaskParameters onOverrun(final OverrunAction action) {
        return new TaskParameters(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic,
            action, windowNs, partition, account, reserved);
    }

    /** A copy with another limit of its window, from grant to end in ns, 0 = unlimited. */
    public TaskParameters withWindow(final long ns) {
        return new TaskParameters(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic,
            overrun, ns, partition, account, reserved);
    }

    /** A copy in another partition, 0 = none. */
    public TaskParameters inPartition(final int id) {
        return new TaskParameters(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic,
            overrun, windowNs, id, account, reserved);
    }

    /** A copy with another account, 0 = none. */
    public TaskParameters inAccount(final int id) {
        return new TaskParameters(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic,
            overrun, windowNs, partition, id, reserved);
    }

    /** A copy with room of its own on the GPU. */
    public TaskParameters inReserve() {
        return new TaskParameters(taskId, contextId, priority, gpuPriority, relativeDeadlineNs, budgetNs, optimistic,
            overrun, windowNs, partition, account, true);
    }

    /** Whether the task is a real-time one; true if its priority is 1..99. */
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
