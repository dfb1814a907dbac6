/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * The time of the dispatcher's duty cycle, CLOCK_MONOTONIC ns: read once, then the same for all that the cycle decides.
 * Dispatcher thread only.
 */
final class CycleClock {
    private long nowNs;

    long nowNs() {
        return nowNs;
    }

    /** A cycle begins, or a record is younger than the cycle. */
    void set(final long timeNs) {
        nowNs = timeNs;
    }
}
