/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.Priority;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.function.IntSupplier;

/**
 * The announced begins, one for each GPU. Lower work is to be disabled when the begin comes, and not longer before than
 * disabling takes. Advice only: it acts while no real-time segment runs, is dropped when a better task announces a
 * begin, and ends when the begin is late by more than the time that disabling takes (at least 1 ms). Dispatcher thread
 * only, allocates nothing.
 */
final class HintSchedule {
    /** Two thread wake-ups and the jitter of the clock's sleepers. */
    static final long MARGIN_NS = 300_000;
    /** How late a begin may be at least. */
    static final long LATE_MIN_NS = 1_000_000;

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final Counters counters;
    private final IntSupplier processes;
    private final boolean preemptive;
    /** By GPU: the task whose begin is the next to act on, null if there is none. */
    private final TaskEntry[] expected;
    /** By GPU: when lower work is to be disabled for it, and when that ends if it does not begin. */
    private final long[] fromNs;
    private final long[] untilNs;
    private final Reservation[] reservations;

    /**
     * @param scheduler  decides
     * @param desired    where lower work is disabled
     * @param counters   of hints
     * @param contexts   highest context id
     * @param processes  how many processes have a context on each GPU
     * @param preemptive whether the mechanism can disable a context
     */
    HintSchedule(final SegmentScheduler scheduler, final DesiredStates desired, final Counters counters,
        final int contexts, final IntSupplier processes, final boolean preemptive) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.counters = counters;
        this.processes = processes;
        this.preemptive = preemptive;
        expected = new TaskEntry[desired.gpus()];
        fromNs = new long[desired.gpus()];
        untilNs = new long[desired.gpus()];
        reservations = new Reservation[desired.gpus()];
        for (int g = 0; g < reservations.length; g++) {
            reservations[g] = new Reservation(scheduler, desired.enforcer(g).desired(), g, contexts + 1);
        }
    }

    /**
     * A task announces its next begin. The caller settles.
     *
     * @param atNs when, CLOCK_MONOTONIC ns
     */
    void announce(final TaskEntry task, final long atNs) {
        final int gpu = task.gpu();
        if (!preemptive || !task.isRealTime() || !scheduler.policy().enforces()) {
            return;
        }
        final TaskEntry known = expected[gpu];
        if (known != null && known != task && Priority.isHigherThan(known.gpuPriority, task.gpuPriority)) {
            return;
        }
        final Capabilities can = desired.enforcer(gpu).mechanism().capabilities();
        final long leadNs = can.disableNs()
            + can.disablePerContextNs() * Math.max(0, processes.getAsInt() - 1) + MARGIN_NS;
        reservations[gpu].end();
        expected[gpu] = task;
        fromNs[gpu] = atNs - leadNs;
        untilNs[gpu] = atNs + Math.max(leadNs, LATE_MIN_NS);
    }

    /** The announced begin came, or its task is closed. Published with the decision that follows. */
    void forget(final TaskEntry task) {
        if (expected[task.gpu()] == task) {
            forget(task.gpu());
        }
    }

    private void forget(final int gpu) {
        expected[gpu] = null;
        reservations[gpu].end();
    }

    /**
     * Acts on what is due. The caller settles if there was something.
     *
     * @return on how many GPUs something was due
     */
    int poll(final long nowNs) {
        int due = 0;
        for (int g = 0; g < expected.length; g++) {
            if (nextNs(g) <= nowNs) {
                act(g);
                due++;
            }
        }
        return due;
    }

    private void act(final int gpu) {
        if (reservations[gpu].isActive()) {
            counters.increment(Counter.HINTS_WASTED);
            forget(gpu);
        } else if (scheduler.isRealTime(scheduler.runningTask(gpu))) {
            forget(gpu);   // the GPU is in use; priorities decide at the begin
        } else {
            counters.increment(Counter.HINTS_ACTED);
            reservations[gpu].start(expected[gpu].id, expected[gpu].contextId);
        }
    }

    private long nextNs(final int gpu) {
        return expected[gpu] == null ? Long.MAX_VALUE : reservations[gpu].isActive() ? untilNs[gpu] : fromNs[gpu];
    }

    /** When something is due next, {@link Long#MAX_VALUE} if nothing is. */
    long nextNs() {
        long next = Long.MAX_VALUE;
        for (int g = 0; g < expected.length; g++) {
            next = Math.min(next, nextNs(g));
        }
        return next;
    }

    /**
     * Follows what the scheduler decided: the GPU is kept free only while no real-time segment runs.
     *
     * @return whether the desired state changed, so has to be published
     */
    boolean follow(final int gpu) {
        return reservations[gpu].follow();
    }
}
