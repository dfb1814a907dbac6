/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.kubernetes;

import dev.gpuseg.analysis.model.Durations;

/**
 * GPU time per period.
 *
 * @param quotaNs  more than 0, at most the period
 * @param periodNs 1 ms to 10 s
 */
record Cap(long quotaNs, long periodNs) {
    static final long PERIOD_MIN_NS = 1_000_000L;
    static final long PERIOD_MAX_NS = 10_000_000_000L;

    Cap {
        if (quotaNs <= 0 || quotaNs > periodNs || periodNs < PERIOD_MIN_NS || periodNs > PERIOD_MAX_NS) {
            throw new IllegalArgumentException("cap is " + quotaNs + " ns per " + periodNs + " ns; use a quota of more "
                + "than 0 and at most the period, and a period of 1ms..10s");
        }
    }

    /** Whether this leaves more GPU time than another one. */
    boolean isWiderThan(final Cap other) {
        return (double) quotaNs / periodNs > (double) other.quotaNs / other.periodNs;
    }

    @Override
    public String toString() {
        return Durations.format(quotaNs) + "/" + Durations.format(periodNs);
    }
}
