/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/**
 * How best effort shares a GPU with real-time tasks whose begins wait for no driver call ({@code docs/turns.md}).
 *
 * @param sliceNs  longest time slice of a best-effort context, positive
 * @param contexts most best-effort contexts that a wait for the GPU can meet, 1..{@link PlatformLimits#MAX_CONTEXTS}
 */
public record TurnLimits(long sliceNs, int contexts) {
    /** Validates the ranges. */
    public TurnLimits {
        Task.requireTime("platform: turns: slice", sliceNs);
        if (sliceNs == 0) {
            throw new InvalidModelException("platform: turns: slice is 0; it must be positive, like 100us");
        }
        if (contexts < 1 || contexts > PlatformLimits.MAX_CONTEXTS) {
            throw new InvalidModelException("platform: turns: contexts is " + contexts + "; it must be 1.."
                + PlatformLimits.MAX_CONTEXTS);
        }
    }
}
