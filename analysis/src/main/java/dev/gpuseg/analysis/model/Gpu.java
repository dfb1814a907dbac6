/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/**
 * The measured constants of one GPU. All times in nanoseconds, 0..{@link Durations#MAX_NS}.
 *
 * @param epsilonNs   longest time from the decision to change the set of enabled contexts until the hardware obeys:
 *                    command (alpha) and switch (theta) together
 * @param alphaNs     the part of epsilon that the command costs
 * @param thetaNs     the part of epsilon that a context switch on the GPU costs; also paid per time slice by the
 *                    default round robin
 * @param timesliceNs time slice of the default round robin; greater than 0
 */
public record Gpu(long epsilonNs, long alphaNs, long thetaNs, long timesliceNs) {
    /** Time slice assumed where a file gives none: that of the published experiments, 1024 us. */
    public static final long DEFAULT_TIMESLICE_NS = 1_024_000L;

    /** Switch cost assumed where a file gives none: that of the published experiments, 200 us. */
    public static final long DEFAULT_THETA_NS = 200_000L;

    /** Validates the ranges. */
    public Gpu {
        Task.requireTime("platform: epsilon", epsilonNs);
        Task.requireTime("platform: alpha", alphaNs);
        Task.requireTime("platform: theta", thetaNs);
        Task.requireTime("platform: timeslice", timesliceNs);
        if (timesliceNs == 0) {
            throw new InvalidModelException("platform: timeslice is 0; it must be positive, like 1024us");
        }
    }

    /**
     * A GPU of which only epsilon matters; the rest as published.
     *
     * @param epsilonNs runlist update delay
     * @return the GPU
     */
    public static Gpu ofEpsilon(final long epsilonNs) {
        return new Gpu(epsilonNs, Math.max(0, epsilonNs - DEFAULT_THETA_NS), DEFAULT_THETA_NS, DEFAULT_TIMESLICE_NS);
    }

    /**
     * The same GPU with another epsilon.
     *
     * @param newEpsilonNs runlist update delay
     * @return the changed copy
     */
    public Gpu withEpsilonNs(final long newEpsilonNs) {
        return new Gpu(newEpsilonNs, alphaNs, thetaNs, timesliceNs);
    }
}
