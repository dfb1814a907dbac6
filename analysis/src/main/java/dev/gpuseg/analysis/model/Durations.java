/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.math.BigDecimal;

/**
 * Durations as people write them ({@code 2ms}, {@code 250us}, {@code 1.5ms}) against {@code long} nanoseconds. A bare
 * number is refused: related projects use ms, us, ns or s for the same field.
 */
public final class Durations {
    /**
     * Largest duration of the model, 2^53 ns (about 104 days): sums of many of them stay far from 2^63, and every
     * value survives a reader that keeps numbers as doubles.
     */
    public static final long MAX_NS = 1L << 53;

    private static final int MAX_TEXT = 40;

    private Durations() {
    }

    /**
     * Reads a non-negative duration.
     *
     * @param text digits, an optional fraction, and a unit: ns, us, ms or s ("min" and "h" are not accepted)
     * @return nanoseconds, 0..{@link #MAX_NS}
     * @throws IllegalArgumentException with a message of one line: what is wrong, and what to write instead
     */
    public static long parse(final String text) {
        final String trimmed = text.trim();
        final int length = trimmed.length();
        if (length == 0) {
            throw new IllegalArgumentException("is empty; write a number and a unit, like 10ms");
        }
        if (length > MAX_TEXT) {
            throw new IllegalArgumentException("is " + length
                + " characters long; write a number and a unit, like 10ms");
        }
        if (trimmed.charAt(0) == '-') {
            throw new IllegalArgumentException("is '" + trimmed + "', a negative time; it must be 0 or more");
        }
        int index = 0;
        long whole = 0;
        int wholeDigits = 0;
        while (index < length && isDigit(trimmed.charAt(index))) {
            if (whole > (Long.MAX_VALUE - 9) / 10) {
                throw tooLong(trimmed);
            }
            whole = whole * 10 + (trimmed.charAt(index) - '0');
            index++;
            wholeDigits++;
        }
        long fraction = 0;
        int fractionDigits = 0;
        if (index < length && trimmed.charAt(index) == '.') {
            index++;
            while (index < length && isDigit(trimmed.charAt(index))) {
                if (fractionDigits == 17) {
                    throw new IllegalArgumentException("is '" + trimmed + "'; at most 17 digits may follow the point");
                }
                fraction = fraction * 10 + (trimmed.charAt(index) - '0');
                index++;
                fractionDigits++;
            }
            if (fractionDigits == 0) {
                throw notADuration(trimmed);
            }
        }
        if (wholeDigits == 0) {
            throw notADuration(trimmed);
        }
        while (index < length && trimmed.charAt(index) == ' ') {
            index++;
        }
        final String unit = trimmed.substring(index);
        final int exponent = switch (unit) {
            case "ns" -> 0;
            case "us", "µs", "μs" -> 3;
            case "ms" -> 6;
            case "s" -> 9;
            case "" -> throw new IllegalArgumentException("is the bare number " + trimmed
                + "; a duration needs a unit: write " + trimmed + "ms, " + trimmed + "us or " + trimmed + "ns");
            default -> throw notADuration(trimmed);
        };
        while (fractionDigits > exponent) {
            if (fraction % 10 != 0) {
                throw new IllegalArgumentException("is '" + trimmed + "', finer than one nanosecond; round it");
            }
            fraction /= 10;
            fractionDigits--;
        }
        final long scale = pow10(exponent);
        if (whole > MAX_NS / scale) {
            throw tooLong(trimmed);
        }
        final long ns = whole * scale + fraction * pow10(exponent - fractionDigits);
        if (ns > MAX_NS) {
            throw tooLong(trimmed);
        }
        return ns;
    }

    /**
     * Writes a duration in the largest unit that needs no more than its exact digits.
     *
     * @param ns any value; a negative one keeps its sign
     * @return text that {@link #parse} reads back (unless negative)
     */
    public static String format(final long ns) {
        final long magnitude = Math.abs(ns);
        if (magnitude >= 1_000_000_000L && magnitude % 1_000_000L == 0) {
            return decimal(ns, 9) + "s";
        }
        if (magnitude >= 1_000_000L) {
            return decimal(ns, 6) + "ms";
        }
        if (magnitude >= 1_000L) {
            return decimal(ns, 3) + "us";
        }
        return ns + "ns";
    }

    /**
     * Milliseconds with all their digits, for tables.
     *
     * @param ns nanoseconds
     * @return a decimal number without unit
     */
    public static String milliseconds(final long ns) {
        return decimal(ns, 6);
    }

    private static String decimal(final long ns, final int scale) {
        final BigDecimal value = BigDecimal.valueOf(ns, scale).stripTrailingZeros();
        return value.toPlainString();
    }

    private static boolean isDigit(final char c) {
        return c >= '0' && c <= '9';
    }

    private static long pow10(final int exponent) {
        long result = 1;
        for (int i = 0; i < exponent; i++) {
            result *= 10;
        }
        return result;
    }

    private static IllegalArgumentException tooLong(final String text) {
        return new IllegalArgumentException("is '" + text
            + "', longer than 2^53 ns (about 104 days); write a shorter time");
    }

    private static IllegalArgumentException notADuration(final String text) {
        return new IllegalArgumentException("is '" + text.replaceAll("\\p{Cntrl}", "?")
            + "', not a duration; write a number and a unit (ns, us, ms, s), like 1.5ms");
    }
}
