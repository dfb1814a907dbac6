/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * The constants of a platform, from measurements on it. All times in nanoseconds.
 *
 * <pre>
 *   response of one kernel    alone                    r0 = the least
 *                             others held back         off = the most that a response exceeds r0
 *                             shared by the driver     the most that a response exceeds r0 = timeslice + theta
 *   kernels per second        of two that share / of one alone = timeslice / (timeslice + theta)
 *   the driver says           timeslice; then theta = the median by which a shared response exceeds r0
 *   driver calls              alpha = the longest, times 1 + margin; back = the most that bringing all back took
 *
 *   (the daemon anticipates nothing: an update ahead of the begin would not be in the response)
 *   epsilon = (the longer of off and the longest call) + back, times 1 + margin
 * </pre>
 *
 * <p>A kernel that arrives while the other process has the GPU waits for the rest of its time slice; at arrivals that
 * fall anywhere in a slice that rest is evenly spread. The third quartile is used because the longest response shows
 * the operating system, not the GPU.
 *
 * <p>Where the driver tells its time slice, that is taken instead: some devices switch to new work at once, so that a
 * response shorter than a slice contains the switch but no rest of a slice, and says nothing of how long slices are.
 *
 * <p>epsilon is what an update of the hardware delays a segment, with all that this daemon and this operating system
 * add to it. One update can disable some contexts and enable others ({@code analysis/docs/window.md}, section 7);
 * either part is at most what was measured with all of them. The measured begins themselves only disable: without
 * enabling, a segment that preempts another real-time one, and has its own context disabled, would not be covered. It
 * is an observed maximum with a margin, not a proof: a longer delay that did not happen while it was
 * measured is possible.
 *
 * @param epsilonNs   longest delay of a segment by one update, margin included
 * @param oneWayNs    the same if no update both disables and enables
 * @param alphaNs     the longest driver call, margin included; at most epsilon
 * @param thetaNs     context switch
 * @param timesliceNs of the driver's round robin
 * @param aloneNs     r0
 */
public record Calibration(long epsilonNs, long oneWayNs, long alphaNs, long thetaNs, long timesliceNs, long aloneNs) {
    private static final double SHARE = 0.75;

    /**
     * What was measured.
     *
     * @param alone     responses of a kernel alone on the GPU
     * @param blocking  responses against best-effort work, begin waits
     * @param optimistic responses against best-effort work, begin does not wait
     * @param shared    responses of a kernel against one other process without scheduling
     * @param calls     what disables and enables took
     * @param returns   what bringing all others back took, the calls of one update together
     * @param oneRate   kernels per second of one process alone
     * @param twoRate   kernels per second of two processes together
     * @param sliceNs   what the driver says its time slice is, 0 = it says nothing
     */
    public record Samples(long[] alone, long[] blocking, long[] optimistic, long[] shared, long[] calls, long[] returns,
        double oneRate, double twoRate, long sliceNs) {
    }

    /**
     * Draws the constants.
     *
     * @param samples what was measured; no list empty
     * @param margin  added to epsilon and alpha, 0.2 = a fifth
     * @return the constants
     * @throws IllegalStateException if the measurements contradict each other
     */
    public static Calibration of(final Samples samples, final double margin) {
        final long r0 = LongStream.of(samples.alone).min().orElseThrow();
        final long call = LongStream.of(samples.calls).max().orElseThrow();
        final long off = Math.max(call, Math.max(excess(samples.blocking, r0), excess(samples.optimistic, r0)));
        final long back = LongStream.of(samples.returns).max().orElseThrow();
        final long epsilon = withMargin(off + back, margin);
        final long oneWay = withMargin(Math.max(off, back), margin);
        final long[] shared = samples.shared.clone();
        Arrays.sort(shared);
        if (samples.sliceNs > 0) {
            return new Calibration(epsilon, oneWay, withMargin(call, margin),
                Math.max(0, shared[shared.length / 2] - r0), samples.sliceNs, r0);
        }
        final long wait = shared[(shared.length - 1) * 3 / 4] - r0;
        if (wait <= 0 || samples.oneRate <= 0 || samples.twoRate <= 0) {
            throw new IllegalStateException("sharing the GPU delayed no process (wait " + wait + " ns, "
                + samples.oneRate + " and " + samples.twoRate + " kernels/s); was other work on it already?");
        }
        // a shared machine can make two faster than one by a trifle; then the switch is below what can be measured
        final double kept = Math.min(1, samples.twoRate / samples.oneRate);
        final double switchToSlice = 1 / kept - 1;
        final long timeslice = Math.round(wait / (SHARE + switchToSlice));
        return new Calibration(epsilon, oneWay, withMargin(call, margin),
            Math.round(timeslice * switchToSlice), timeslice, r0);
    }

    /**
     * The longer delays of two calibrations of one machine.
     *
     * @param other made under other circumstances
     * @return this one's switch and time slice, with the longer epsilon, one-way epsilon and alpha
     */
    public Calibration orLonger(final Calibration other) {
        return new Calibration(Math.max(epsilonNs, other.epsilonNs), Math.max(oneWayNs, other.oneWayNs),
            Math.max(alphaNs, other.alphaNs), thetaNs, timesliceNs, aloneNs);
    }

    private static long excess(final long[] responses, final long r0) {
        return Arrays.stream(responses).max().orElseThrow() - r0;
    }

    private static long withMargin(final long ns, final double margin) {
        return (long) Math.ceil(ns * (1 + margin));
    }
}
