/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Receives what the {@link SegmentScheduler} decided. Implemented by the daemon's dispatcher, by the simulator and by
 * tests; the scheduler itself has no other effect on the world.
 *
 * <p>Within one scheduler event the calls arrive in this order: contexts to disable, preempted segments, contexts to
 * enable, resumed and granted segments, pre-grants. Only changes are reported. Calls are made on the thread that drives
 * the scheduler and must not call back into it. Nothing is allocated for a call.
 */
public interface DecisionSink {
    /**
     * A context is wanted on (or off) the hardware.
     *
     * @param gpu       index of the GPU
     * @param contextId the context whose desired state changed
     * @param enabled   true if its work may run
     */
    void onContextDesired(int gpu, int contextId, boolean enabled);

    /**
     * A begun segment was preempted by a better one (also: an optimistic begin that found a better one), or
     * because its partition is closed, it is another's turn, its cap is used up or it was suspended.
     *
     * @param gpu      index of the GPU
     * @param taskId   the preempted task
     * @param ticket   its ticket
     * @param byTaskId the task that runs instead, {@link SegmentScheduler#NONE} if none does
     */
    void onPreempt(int gpu, int taskId, long ticket, int byTaskId);

    /**
     * A preempted segment may run again.
     *
     * @param gpu    index of the GPU
     * @param taskId the task
     * @param ticket its ticket
     */
    void onResume(int gpu, int taskId, long ticket);

    /**
     * A waiting segment may run. The receiver writes the grant word after every context that this event disabled is off
     * the hardware. Called exactly once per begun segment unless it is cancelled first; for an optimistic begin it is
     * called within {@link SegmentScheduler#begin} (the caller did not wait for it).
     *
     * @param gpu    index of the GPU
     * @param taskId the task
     * @param ticket its ticket
     */
    void onGrant(int gpu, int taskId, long ticket);

    /**
     * The next begin of a task need not wait (optimistic begin), or must wait again.
     *
     * @param taskId     the task
     * @param pregranted true if begin may return at once
     */
    void onPregrant(int taskId, boolean pregranted);

    /**
     * The absolute deadline of a begun segment passed.
     *
     * @param taskId     the task
     * @param ticket     its ticket
     * @param deadlineNs the deadline
     */
    void onDeadlineMiss(int taskId, long ticket, long deadlineNs);

    /**
     * A segment used up its budget (wall time while running, preempted time excluded) or its window (from grant to
     * end). What follows from the task's {@link OverrunAction} is reported next, as a decision of its own.
     *
     * @param taskId   the task
     * @param ticket   its ticket
     * @param budgetNs the one that was used up
     */
    void onOverrun(int taskId, long ticket, long budgetNs);

    /**
     * What a task begins is best effort from now on, because its account has used up its share of the GPU; or it has
     * its rank again. Reported before what follows from it, also for tasks that are idle, and when a task is opened in
     * an account that is spent.
     *
     * @param taskId the task
     * @param spent  true if the share is used up
     */
    default void onShare(final int taskId, final boolean spent) {
        // a sink without accounts ignores it
    }

    /**
     * A context is to have another timeslice, so that the device's own round robin gives it its share
     * ({@link Sharing#TIMESLICES}).
     *
     * @param gpu         index of the GPU
     * @param contextId   the context
     * @param timesliceNs ns, 0 = the device's default
     */
    default void onTimeslice(final int gpu, final int contextId, final long timesliceNs) {
        // a sink that sets no timeslices ignores them
    }
}
