/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

/**
 * Receives what a daemon would journal of a run, in the order of time. Tasks are indices into the task set, times
 * nanoseconds since the start of the run. Tickets number the segments of a task from 1.
 */
public interface EventSink {
    /**
     * A job begins to run: its application marks the release.
     *
     * @param task      index of the task
     * @param arrivalNs when the job arrived
     * @param sampleNs  when the sample was taken that it works on, in the first chain of the task; -1 = none
     * @param nowNs     when
     */
    void onRelease(int task, long arrivalNs, long sampleNs, long nowNs);

    /**
     * A segment begins.
     *
     * @param task       index of the task
     * @param ticket     of the segment
     * @param optimistic true if the thread goes on without waiting for the grant
     * @param arrivalNs  of the job
     * @param deadlineNs of the job, absolute
     * @param nowNs      when
     */
    void onBegin(int task, long ticket, boolean optimistic, long arrivalNs, long deadlineNs, long nowNs);

    /**
     * The scheduler has chosen a segment; the grant follows when the others are disabled.
     *
     * @param task   index of the task
     * @param ticket of the segment
     * @param nowNs  when
     */
    void onDecided(int task, long ticket, long nowNs);

    /**
     * A segment may use the GPU.
     *
     * @param task   index of the task
     * @param ticket of the segment
     * @param nowNs  when
     */
    void onGranted(int task, long ticket, long nowNs);

    /**
     * A segment is preempted.
     *
     * @param task   index of the task
     * @param ticket of the segment
     * @param by     index of the task that goes first, -1 = none
     * @param nowNs  when
     */
    void onPreempted(int task, long ticket, int by, long nowNs);

    /**
     * A preempted segment is resumed.
     *
     * @param task   index of the task
     * @param ticket of the segment
     * @param nowNs  when
     */
    void onResumed(int task, long ticket, long nowNs);

    /**
     * The deadline of a begun segment passes.
     *
     * @param task       index of the task
     * @param ticket     of the segment
     * @param deadlineNs the deadline
     * @param nowNs      when
     */
    void onMissed(int task, long ticket, long deadlineNs, long nowNs);

    /**
     * A segment ends.
     *
     * @param task   index of the task
     * @param ticket of the segment
     * @param nowNs  when
     */
    void onEnded(int task, long ticket, long nowNs);

    /**
     * A job ends.
     *
     * @param task       index of the task
     * @param responseNs since its arrival
     * @param nowNs      when
     */
    void onJobEnded(int task, long responseNs, long nowNs);
}
