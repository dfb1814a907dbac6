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

    SegmentView at(final int id) {
        taskId = id;
        return this;
    }

    /**
     * The task.
     *
     * @return its id
     */
    public int taskId() {
        return taskId;
    }

    /**
     * The context of the task.
     *
     * @return its id
     */
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

    /**
     * Whether the segment is a real-time one.
     *
     * @return false for best effort
     */
    public boolean isRealTime() {
        return Priority.isRealTime(table.rank[taskId]);
    }

    /**
     * The time partition of the task.
     *
     * @return 0 = none
     */
    public int partition() {
        return table.partition[taskId];
    }

    /**
     * When the job was released.
     *
     * @return ns of CLOCK_MONOTONIC
     */
    public long releaseNs() {
        return table.releaseNs[taskId];
    }

    /**
     * The absolute deadline.
     *
     * @return ns of CLOCK_MONOTONIC, {@link Long#MAX_VALUE} if there is none
     */
    public long deadlineNs() {
        return table.deadlineNs[taskId];
    }

    /**
     * When the segment began, by the caller's reading.
     *
     * @return ns of CLOCK_MONOTONIC
     */
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
