/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Reserves one GPU for an expected begin while no real-time segment runs on it: a running segment is not preempted
 * for one that has not begun, even if no other context is disabled for it. Contexts that the expected begin would leave
 * enabled stay enabled, those with room of their own among them. Not thread-safe; allocates nothing after construction.
 */
public final class Reservation {
    private static final int NONE = SegmentScheduler.NONE;

    /** Where contexts are disabled. What the scheduler itself disables has precedence over all of this. */
    public interface Target {
        /**
         * All contexts but this one, and those that are {@linkplain #spare spared}, are to be disabled while the
         * scheduler itself wants none disabled. Not called while a reservation is in force.
         *
         * @param contextId the context of the task that is expected
         */
        void reserve(int contextId);

        /**
         * The reservation in force does not concern this context. Once for each context.
         *
         * @param contextId a context that the expected begin would leave enabled
         */
        void spare(int contextId);

        /** Ends {@link #reserve}; nothing if no reservation is in force. */
        void unreserve();
    }

    private final SegmentScheduler scheduler;
    private final Target target;
    private final int gpu;
    private final int[] spared;
    private int task = NONE;
    private int contextId = NONE;
    /** For whom the target has the GPU reserved, {@link SegmentScheduler#NONE} if for nobody. */
    private int inForceFor = NONE;
    /** {@link SegmentScheduler#reservedContextsVersion} of then. */
    private long sparedVersion;

    /**
     * A reservation for nobody.
     *
     * @param scheduler decides
     * @param target    of the GPU
     * @param gpu       index
     * @param contexts  how many there can be, with number 0
     */
    public Reservation(final SegmentScheduler scheduler, final Target target, final int gpu, final int contexts) {
        this.scheduler = scheduler;
        this.target = target;
        this.gpu = gpu;
        spared = new int[contexts];
    }

    /**
     * Whether a begin is expected.
     *
     * @return true from {@link #start} to {@link #end}, with the reservation in force or, for the moment, not
     */
    public boolean isActive() {
        return contextId != NONE;
    }

    /** Whether the GPU is reserved; as the target was told last. */
    public boolean isInForce() {
        return inForceFor != NONE;
    }

    /**
     * A begin is expected soon. {@link #follow} is to be called.
     *
     * @param taskId       of which task
     * @param itsContextId its context
     */
    public void start(final int taskId, final int itsContextId) {
        task = taskId;
        contextId = itsContextId;
    }

    /** It came, or is not expected any more. {@link #follow} is to be called. */
    public void end() {
        contextId = NONE;
    }

    /** Follows what was decided; true if the target was told something. */
    public boolean follow() {
        final int wanted = isActive() && scheduler.mayReserve(gpu)
            && !scheduler.isRealTime(scheduler.runningTask(gpu)) ? contextId : NONE;
        final long version = scheduler.reservedContextsVersion();
        if (wanted == inForceFor && (wanted == NONE || version == sparedVersion)) {
            return false;
        }
        target.unreserve();
        inForceFor = wanted;
        sparedVersion = version;
        if (wanted != NONE) {
            target.reserve(wanted);
            spare(scheduler.readyFor(task, spared));
            spare(scheduler.reservedContexts(gpu, spared));
        }
        return true;
    }

    private void spare(final int count) {
        for (int i = 0; i < count; i++) {
            target.spare(spared[i]);
        }
    }
}
