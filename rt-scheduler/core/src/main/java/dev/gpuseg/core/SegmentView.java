/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * A read-only window on one begun segment, moved from segment to segment by the scheduler: valid only during the call
 * that it is given to. Not thread-safe.
 */
public final class SegmentView {
    private final SegmentTable table;
    private int taskId;

    SegmentView(final SegmentTable table) {
        this.table = table;
    }

    /**
     * A view of a segment that no scheduler knows, to ask a policy about it in tests and before it is used.
     *
     * @param taskId      0..{@link SchedulerConfig#TASKS_MAX}
     * @param gpuPriority 0 best effort, 1..99 real time
     * @param partition   0 = none
     * @param releaseNs   ns
     * @param deadlineNs  ns, {@link Long#MAX_VALUE} if there is none
     * @param beginNs     ns
     * @param budgetNs    ns, 0 = not declared
     * @return a view that never moves; the context has the number of the task
     */
    public static SegmentView of(final int taskId, final int gpuPriority, final int partition, final long releaseNs,
        final long deadlineNs, final long beginNs, final long budgetNs) {
        final SegmentTable table = new SegmentTable(taskId);
        table.contextId[taskId] = taskId;
        table.gpuPriority[taskId] = Priority.requireValid(gpuPriority, "task " + taskId);
        table.rank[taskId] = gpuPriority;
        table.partition[taskId] = partition;
        table.releaseNs[taskId] = releaseNs;
        table.deadlineNs[taskId] = deadlineNs;
        table.beginNs[taskId] = beginNs;
        table.budgetNs[taskId] = budgetNs;
        return new SegmentView(table).at(taskId);
    }

    SegmentView at(final int id) {
        taskId = id;
        return this;
    }

    /** The id of the task. */
    public int taskId() {
        return taskId;
    }

    /** The id of the task's context. */
    public int contextId() {
        return table.contextId[taskId];
    }

    /**
     * The GPU priority of the segment: that of its task, or 0 if it was demoted.
     *
     * @return 0 best effort, 1..99, 99 highest; compare with {@link Priority} only
     */
    public int gpuPriority() {
        return table.rank[taskId];
    }

    /** Whether the segment is a real-time one; false for best effort. */
    public boolean isRealTime() {
        return Priority.isRealTime(table.rank[taskId]);
    }

    /** The time partition of the task; 0 = none. */
    public int partition() {
        return table.partition[taskId];
    }

    /** When the job was released; ns of CLOCK_MONOTONIC. */
    public long releaseNs() {
        return table.releaseNs[taskId];
    }

    /** The absolute deadline; ns of CLOCK_MONOTONIC, {@link Long#MAX_VALUE} if there is none. */
    public long deadlineNs() {
        return table.deadlineNs[taskId];
    }

    /** When the segment began, by the caller's reading; ns of CLOCK_MONOTONIC. */
    public long beginNs() {
        return table.beginNs[taskId];
    }

    /**
     * The longest time that the segment may hold the GPU, as its task declares it: constant while the segment is begun,
     * however long it has run.
     *
     * @return ns, 0 = not declared
     */
    public long budgetNs() {
        return table.budgetNs[taskId];
    }
}
