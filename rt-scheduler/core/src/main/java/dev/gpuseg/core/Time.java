/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** Arithmetic on ns of CLOCK_MONOTONIC, which are never negative. */
final class Time {
    /** No such time. */
    static final long NEVER = Long.MAX_VALUE;

    private Time() {
    }

    /** Sum of two non-negative times; a sum that does not fit is {@link #NEVER}. */
    static long addSaturating(final long a, final long b) {
        final long sum = a + b;
        return sum < 0 ? NEVER : sum;
    }
}
