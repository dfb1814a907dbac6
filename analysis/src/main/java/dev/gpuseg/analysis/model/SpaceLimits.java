/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/**
 * What runs beside the GPU segments of a set, as clients of one MPS server ({@code docs/space.md} of the analysis).
 *
 * @param reservePercent  part of the multiprocessors that is kept free for tasks that have a part of it,
 *                        0..{@link #MAX_RESERVE}
 * @param slowdownPercent how much longer work beside it may make a segment, 0..{@link #MAX_SLOWDOWN}
 * @param inFlightNs      longest time from the begin of a segment of a task without a part until all that best-effort
 *                        programs inside have on the GPU has ended
 */
public record SpaceLimits(int reservePercent, int slowdownPercent, long inFlightNs) {
    /** Nothing runs beside a segment, and nothing is kept free. */
    public static final SpaceLimits NONE = new SpaceLimits(0, 0, 0);
    /** The largest reserve, percent. */
    public static final int MAX_RESERVE = 90;
    /** How long the daemon lets a segment wait for what is in flight; then it begins beside it. */
    public static final long DRAIN_NS = 50_000_000L;
    /** The largest slowdown, percent. */
    public static final int MAX_SLOWDOWN = 10_000;

    /** Validates the ranges. */
    public SpaceLimits {
        if (reservePercent < 0 || reservePercent > MAX_RESERVE) {
            throw new InvalidModelException("platform: space: reserve is " + reservePercent + "%; it must be 0%.."
                + MAX_RESERVE + "%");
        }
        if (slowdownPercent < 0 || slowdownPercent > MAX_SLOWDOWN) {
            throw new InvalidModelException("platform: space: slowdown is " + slowdownPercent + "%; it must be 0%.."
                + MAX_SLOWDOWN + "%");
        }
        if (inFlightNs < 0 || inFlightNs > DRAIN_NS) {
            throw new InvalidModelException("platform: space: in_flight is " + Durations.format(inFlightNs)
                + "; it must be 0ns.." + Durations.format(DRAIN_NS) + ", since the daemon lets no segment wait longer; "
                + "keep programs with longer kernels out of the space");
        }
    }

    /** Whether nothing runs beside a segment. */
    public boolean isNone() {
        return equals(NONE);
    }

    /** What it does to the bounds; without a full stop; empty if nothing. */
    public String text() {
        if (isNone()) {
            return "";
        }
        return "space: every GPU segment counts " + slowdownPercent + "% longer than declared, and "
            + Durations.format(inFlightNs) + " or another task's segment more where its task has no part of the "
            + reservePercent + "% reserve";
    }
}
