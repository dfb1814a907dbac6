/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.config;

import java.util.List;

/**
 * One setting as it stands in the file.
 *
 * @param key    its name, sections joined by dashes
 * @param values its value as text; several for a list or a mapping ({@code name=value})
 * @param line   where, from 1
 */
public record ConfigEntry(String key, List<String> values, int line) {
    /** Copies the values. */
    public ConfigEntry {
        values = List.copyOf(values);
    }

    /** The value on one line: the values, separated by commas. */
    public String text() {
        return String.join(", ", values);
    }
}
