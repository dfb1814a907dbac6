/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/**
 * How best effort shares a GPU with real-time tasks whose begins wait for no driver call ({@code docs/turns.md}).
 *
 * @param sliceNs  longest time slice of a best-effort context, positive
 * @param contexts most best-effort contexts that a wait for the GPU can meet, 1..{@link PlatformLimits#MAX_CONTEXTS}
 * @param waitNs   how long a wait lasts at most in which no other real-time context is served, the switch that ends it
 *                 included; measured; 0 = not stated, then it follows from slice and contexts
 * @param samples  of how many waits that is the longest; 0 = not stated
 * @param together whether real-time tasks of a GPU share it by slices, too, and none is disabled for another (policy
 *                 classes with one class for all)
 */
public record TurnLimits(long sliceNs, int contexts, long waitNs, int samples, boolean together) {
    /** Validates the ranges. */
    public TurnLimits {
        Task.requireTime("platform: turns: slice", sliceNs);
        Task.requireTime("platform: turns: wait", waitNs);
        if (sliceNs == 0) {
            throw new InvalidModelException("platform: turns: slice is 0; it must be positive, like 100us");
        }
        if (contexts < 1 || contexts > PlatformLimits.MAX_CONTEXTS) {
            throw new InvalidModelException("platform: turns: contexts is " + contexts + "; it must be 1.."
                + PlatformLimits.MAX_CONTEXTS);
        }
        if (samples < 0 || samples > 0 && waitNs == 0) {
            throw new InvalidModelException("platform: turns: samples is " + samples + " and wait is "
                + Durations.format(waitNs) + "; samples counts measured waits, so wait must be there and positive");
        }
    }

    /**
     * Limits without a measured wait.
     *
     * @param sliceNs  as above
     * @param contexts as above
     */
    public TurnLimits(final long sliceNs, final int contexts) {
        this(sliceNs, contexts, 0, 0, false);
    }

    /**
     * The same with other slices and contexts, and without a measured wait.
     *
     * @param ns  longest time slice of a best-effort context
     * @param met most best-effort contexts that a wait can meet
     */
    public TurnLimits with(final long ns, final int met) {
        return new TurnLimits(ns, met, 0, 0, together);
    }

    /** The same for real-time tasks that share their GPU by slices. */
    TurnLimits takenTogether() {
        return new TurnLimits(sliceNs, contexts, waitNs, samples, true);
    }

    /** Whether the wait was measured. */
    public boolean isMeasured() {
        return waitNs > 0;
    }
}
