/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/** Exact integer arithmetic for times and counts. A {@code double} never decides schedulability. */
public final class IntegerMath {
    private IntegerMath() {
    }

    /**
     * Smallest integer not below {@code dividend / divisor}, without the overflow of {@code (a + b - 1) / b}.
     *
     * @param dividend any value; a negative one rounds towards zero, as the mathematical ceiling does
     * @param divisor  greater than 0
     * @return the ceiling of the quotient
     * @throws ArithmeticException if the divisor is not positive
     */
    public static long ceilDiv(final long dividend, final long divisor) {
        if (divisor <= 0) {
            throw new ArithmeticException("ceilDiv: divisor is " + divisor + "; it must be positive");
        }
        final long quotient = dividend / divisor;
        return dividend > 0 && quotient * divisor != dividend ? quotient + 1 : quotient;
    }

    /**
     * Largest integer not above {@code dividend / divisor}.
     *
     * @param dividend any value
     * @param divisor  greater than 0
     * @return the floor of the quotient
     * @throws ArithmeticException if the divisor is not positive
     */
    public static long floorDiv(final long dividend, final long divisor) {
        if (divisor <= 0) {
            throw new ArithmeticException("floorDiv: divisor is " + divisor + "; it must be positive");
        }
        return Math.floorDiv(dividend, divisor);
    }
}
