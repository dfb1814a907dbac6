/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.function.LongSupplier;

/**
 * The time of the dispatcher's duty cycle, CLOCK_MONOTONIC ns: read once, then the same for all that the cycle decides.
 * Dispatcher thread only.
 */
final class CycleClock {
    private final LongSupplier source;
    private long nowNs;

    /** One on which no time passes within a cycle. */
    CycleClock() {
        source = () -> nowNs;
    }

    CycleClock(final LongSupplier source) {
        this.source = source;
    }

    long nowNs() {
        return nowNs;
    }

    /** A cycle begins, or a record is younger than the cycle. */
    void set(final long timeNs) {
        nowNs = timeNs;
    }

    /** The time within the cycle, not before its own: for what must not count from the begin of a cycle that pauses. */
    long readNs() {
        return Math.max(nowNs, source.getAsLong());
    }
}
