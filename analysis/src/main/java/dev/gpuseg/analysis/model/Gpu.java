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
 * @param stallNs     longest stop of the whole GPU that the scheduler does not cause ({@code docs/stalls.md}); 0 = none
 * @param stallPeriodNs shortest time from the begin of one such stop to the next, more than the stop; 0 = none
 */
public record Gpu(long epsilonNs, long alphaNs, long thetaNs, long timesliceNs, long stallNs, long stallPeriodNs) {
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
        Task.requireTime("platform: stall: length", stallNs);
        Task.requireTime("platform: stall: period", stallPeriodNs);
        if (stallNs == 0 != (stallPeriodNs == 0) || stallNs > 0 && stallPeriodNs <= stallNs) {
            throw new InvalidModelException("platform: stall: a stop of " + Durations.format(stallNs) + " every "
                + Durations.format(stallPeriodNs) + " leaves no GPU time; the period must be longer than the stop");
        }
    }

    /**
     * A GPU that only the scheduler stops.
     *
     * @param epsilonNs   as above
     * @param alphaNs     as above
     * @param thetaNs     as above
     * @param timesliceNs as above
     */
    public Gpu(final long epsilonNs, final long alphaNs, final long thetaNs, final long timesliceNs) {
        this(epsilonNs, alphaNs, thetaNs, timesliceNs, 0, 0);
    }

    /**
     * A GPU with the published constants and its own epsilon.
     *
     * @param epsilonNs runlist update delay
     * @return the GPU
     */
    public static Gpu ofEpsilon(final long epsilonNs) {
        return new Gpu(epsilonNs, Math.max(0, epsilonNs - DEFAULT_THETA_NS), DEFAULT_THETA_NS, DEFAULT_TIMESLICE_NS);
    }

    /** The same GPU with another epsilon (runlist update delay); a copy. */
    public Gpu withEpsilonNs(final long newEpsilonNs) {
        return new Gpu(newEpsilonNs, alphaNs, thetaNs, timesliceNs, stallNs, stallPeriodNs);
    }

    /**
     * The same GPU, stopped by others.
     *
     * @param lengthNs longest stop, 0 = none
     * @param periodNs shortest time from one to the next, 0 = none
     * @return the changed copy
     */
    public Gpu withStalls(final long lengthNs, final long periodNs) {
        return new Gpu(epsilonNs, alphaNs, thetaNs, timesliceNs, lengthNs, periodNs);
    }

    /** What a part of its multiprocessors is to the only task that has it: nothing is decided, nothing switched. */
    Gpu alone() {
        return new Gpu(0, 0, 0, timesliceNs, stallNs, stallPeriodNs);
    }

    /**
     * Epsilon with the stops that may fall into an update: the least e with
     * {@code e = epsilon + ceil((e + stall) / period) stall}.
     *
     * @return nanoseconds; epsilon itself where nothing else stops the GPU
     * @throws ArithmeticException if it passes 2^63 ns
     */
    public long stalledEpsilonNs() {
        if (stallNs == 0 || epsilonNs == 0) {
            return epsilonNs;
        }
        long now = epsilonNs;
        while (true) {   // terminates: the period is longer than a stop
            final long next = Math.addExact(epsilonNs, Math.multiplyExact(IntegerMath.ceilDiv(now + stallNs,
                stallPeriodNs), stallNs));
            if (next == now) {
                return now;
            }
            now = next;
        }
    }
}
