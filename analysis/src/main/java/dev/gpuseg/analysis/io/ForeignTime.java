/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Durations;
import java.math.BigDecimal;
import java.math.RoundingMode;

/** Times of formats whose bare numbers have a unit that the format fixes. Stateless. */
final class ForeignTime {
    /** Digits between a nanosecond and the unit. */
    static final int MICROSECONDS = 3;
    static final int MILLISECONDS = 6;

    private ForeignTime() {
    }

    /** A time in a field: a number in the format's unit, or a text with a unit; ns, rounded up. */
    static long ns(final Node value, final int unit) throws InvalidFileException {
        if (value.kind() == Node.Kind.TEXT) {
            return value.durationNs();
        }
        try {
            return scaled(value.show(), number(value), unit);
        } catch (final IllegalArgumentException e) {
            throw value.refuse(e.getMessage());
        }
    }

    /** The same for a cell of a table. */
    static long ns(final String text, final int unit) {
        if (!isNumber(text) && text.matches("[0-9]+(\\.[0-9]*)?")) {
            throw new IllegalArgumentException("is '" + text + "'; write a decimal number, 0 or more, like 1500");
        }
        return isNumber(text) ? scaled("'" + text + "'", new BigDecimal(text), unit) : Durations.parse(text);
    }

    /** A number, 0 or more, in decimal digits. */
    static BigDecimal number(final Node value) throws InvalidFileException {
        if (value.kind() == Node.Kind.INTEGER || value.kind() == Node.Kind.DECIMAL) {
            if (isNumber(value.text())) {
                return new BigDecimal(value.text());
            }
        }
        throw value.refuse("is " + value.show() + (value.text() != null && value.text().matches("[0-9.]{19,}")
            ? ", a number of more than 18 digits; round it" : "; write a decimal number, 0 or more, like 1500"));
    }

    private static boolean isNumber(final String text) {
        return text.matches("(0|[1-9][0-9]{0,17})(\\.[0-9]{1,18})?");
    }

    private static long scaled(final String shown, final BigDecimal number, final int unit) {
        final BigDecimal ns = number.movePointRight(unit).setScale(0, RoundingMode.CEILING);
        if (ns.compareTo(BigDecimal.valueOf(Durations.MAX_NS)) > 0) {
            throw new IllegalArgumentException("is " + shown + ", longer than 104 days; write a shorter time");
        }
        return ns.longValueExact();
    }
}
