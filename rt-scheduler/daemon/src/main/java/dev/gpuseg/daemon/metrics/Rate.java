/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/** How fast a total grows, over the last 5 to 6 seconds. Guarded by its owner. */
final class Rate {
    private static final int SLOTS = 6;
    private static final long SLOT_NS = 1_000_000_000L;

    private final long[] totals = new long[SLOTS];
    private final long[] timesNs = new long[SLOTS];
    private int newest;
    private int used;

    /** Takes the total down once a second. */
    void roll(final long total, final long nowNs) {
        if (used == 0 || nowNs - timesNs[newest] >= SLOT_NS) {
            newest = used == 0 ? 0 : (newest + 1) % SLOTS;
            used = Math.min(SLOTS, used + 1);
            totals[newest] = total;
            timesNs[newest] = nowNs;
        }
    }

    /** Growth per second; 0 before the first second is over. */
    double perSecond(final long total, final long nowNs) {
        if (used == 0) {
            return 0;
        }
        final int oldest = used < SLOTS ? 0 : (newest + 1) % SLOTS;
        final long elapsedNs = nowNs - timesNs[oldest];
        return elapsedNs < SLOT_NS / 2 ? 0 : (total - totals[oldest]) * (double) SLOT_NS / elapsedNs;
    }
}
