/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;

/** Whether a daemon uses gpuseg-observer. */
public enum ObserverMode {
    /** If it works here; else processes are scanned. */
    AUTO,
    /** Always; a daemon that cannot does not start. */
    ON,
    /** Never. */
    OFF;

    /**
     * The mode of a word.
     *
     * @param word as in the settings file
     * @return the mode
     * @throws IllegalArgumentException if there is none, with the words that exist
     */
    public static ObserverMode named(final String word) {
        return Arrays.stream(values()).filter(m -> m.word().equals(word)).findAny().orElseThrow(() ->
            new IllegalArgumentException("observer is " + word + "; use "
                + Arrays.stream(values()).map(ObserverMode::word).collect(Collectors.joining(", "))));
    }

    /** Its word in the settings file; for instance "auto". */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
