/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.command;

import java.math.BigDecimal;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Durations with a unit: 250us, 1.5ms, 10s. A bare number is refused, because its unit is unknown. */
public final class DurationConverter implements ITypeConverter<Duration> {
    private static final Pattern FORM = Pattern.compile("(\\d{1,9}(?:\\.\\d{1,9})?)(ns|us|ms|s|min)");

    @Override
    public Duration convert(final String text) {
        final Matcher m = FORM.matcher(text);
        if (!m.matches()) {
            throw new TypeConversionException("\"" + text + "\" is not a duration; give a number and a unit, "
                + "such as 250us, 1.5ms or 10s");
        }
        final long unitNs = switch (m.group(2)) {
            case "ns" -> 1L;
            case "us" -> 1_000L;
            case "ms" -> 1_000_000L;
            case "s" -> 1_000_000_000L;
            default -> 60_000_000_000L;
        };
        try {
            return Duration.ofNanos(new BigDecimal(m.group(1)).multiply(BigDecimal.valueOf(unitNs)).longValueExact());
        } catch (final ArithmeticException e) {
            throw new TypeConversionException("\"" + text + "\" is finer than a nanosecond or too long");
        }
    }
}
