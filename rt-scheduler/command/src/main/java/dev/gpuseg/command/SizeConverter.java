/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.command;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/** Sizes with a unit: 512KiB, 64MiB, 2GiB. */
public final class SizeConverter implements ITypeConverter<Long> {
    private static final Pattern FORM = Pattern.compile("(\\d{1,9})(KiB|MiB|GiB)");

    @Override
    public Long convert(final String text) {
        final Matcher m = FORM.matcher(text);
        if (!m.matches()) {
            throw new TypeConversionException("\"" + text + "\" is not a size; give a whole number and a unit, "
                + "such as 64MiB");
        }
        final int shift = switch (m.group(2)) {
            case "KiB" -> 10;
            case "MiB" -> 20;
            default -> 30;
        };
        return Long.parseLong(m.group(1)) << shift;
    }
}
