/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * How much best effort uses of the time in which it has one GPU, from what the device says of all work. Of a look,
 * real-time segments count as work, and time in which the GPU was reserved as idle: neither is best effort's.
 * Dispatcher thread only; allocates nothing.
 */
final class BestEffortUse {
    /** {@link #look} says nothing. */
    static final int UNKNOWN = -1;
    /** Best effort had less of the look than that part: too little to tell. */
    private static final double LEAST_SHARE = 0.4;
    private static final long LEAST_LOOK_NS = 500_000_000;
    private static final int PERMILLE = 1000;
    private static final int PERCENT = 100;

    private long lookedNs;
    private long chargedNs;
    private long segmentNs;
    private long keptNs;
    private boolean inSegment;
    private boolean isKept;

    /**
     * From now on.
     *
     * @param segment a real-time segment runs
     * @param kept    the GPU is not best effort's
     */
    void follow(final boolean segment, final boolean kept, final long nowNs) {
        charge(nowNs);
        inSegment = segment;
        isKept = kept;
    }

    /**
     * Since the last look.
     *
     * @param percent of the last second the GPU worked
     * @return per mille, or {@link #UNKNOWN}
     */
    int look(final int percent, final long nowNs) {
        charge(nowNs);
        final long lookNs = nowNs - lookedNs;
        final long freeNs = lookNs - segmentNs - keptNs;
        final long workedNs = lookNs * percent / PERCENT - segmentNs;
        final boolean says = lookedNs != 0 && lookNs >= LEAST_LOOK_NS && freeNs >= LEAST_SHARE * lookNs;
        lookedNs = nowNs;
        segmentNs = 0;
        keptNs = 0;
        return says ? (int) Math.max(0, Math.min(PERMILLE, PERMILLE * workedNs / freeNs)) : UNKNOWN;
    }

    private void charge(final long nowNs) {
        final long ranNs = Math.max(0, nowNs - chargedNs);
        if (inSegment) {
            segmentNs += ranNs;
        } else if (isKept) {
            keptNs += ranNs;
        }
        chargedNs = nowNs;
    }
}
