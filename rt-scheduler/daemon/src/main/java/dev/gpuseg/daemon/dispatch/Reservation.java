/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;

/**
 * Keeps one GPU free for an announced begin while no real-time segment runs on it: a running segment is not preempted
 * for one that has not begun, even if no other context is disabled for it. Contexts that the announced begin would
 * leave enabled stay enabled. Dispatcher thread only.
 */
final class Reservation {
    private final SegmentScheduler scheduler;
    private final DesiredState desired;
    private final int gpu;
    private final int[] ready;
    private int task;
    private int contextId;
    private boolean active;

    /**
     * @param scheduler decides
     * @param desired   of the GPU
     * @param gpu       index
     * @param contexts  how many there can be, with number 0
     */
    Reservation(final SegmentScheduler scheduler, final DesiredState desired, final int gpu, final int contexts) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.gpu = gpu;
        ready = new int[contexts];
    }

    /** Whether a begin is expected, with the GPU kept free or, for the moment, not. */
    boolean isActive() {
        return active;
    }

    /** A begin is expected soon. {@link #follow} is to be called. */
    void start(final int taskId, final int itsContextId) {
        task = taskId;
        contextId = itsContextId;
        active = true;
    }

    /** It came, or is not expected any more. {@link #follow} is to be called. */
    void end() {
        active = false;
    }

    /**
     * Follows what was decided.
     *
     * @return whether the desired state changed, so has to be committed
     */
    boolean follow() {
        final boolean isWanted = active && !scheduler.isRealTime(scheduler.runningTask(gpu));
        final int wanted = isWanted ? contextId : DesiredState.NOBODY;
        if (wanted == desired.reservedFor()) {
            return false;
        }
        desired.unreserve();
        if (isWanted) {
            desired.reserve(contextId);
            final int n = scheduler.readyFor(task, ready);
            for (int i = 0; i < n; i++) {
                desired.spare(ready[i]);
            }
        }
        return true;
    }
}
