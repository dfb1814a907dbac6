/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** Arithmetic on ns of CLOCK_MONOTONIC, which are never negative. */
final class Time {
    /** No such time. */
    static final long NEVER = Long.MAX_VALUE;

    private Time() {
    }

    /** A time as files have it, in the largest unit of ns, us, ms and s in which it is a whole number. */
    static String text(final long ns) {
        final String[] units = {"ns", "us", "ms", "s"};
        long value = ns;
        int unit = 0;
        while (value != 0 && value % 1_000 == 0 && unit < units.length - 1) {
            value /= 1_000;
            unit++;
        }
        return value + units[unit];
    }

    /** Sum of two non-negative times; a sum that does not fit is {@link #NEVER}. */
    static long addSaturating(final long a, final long b) {
        final long sum = a + b;
        return sum < 0 ? NEVER : sum;
    }
}
