/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import java.util.Locale;

/** What follows from a task that the analysis does not accept. */
public enum AdmissionMode {
    /** Nothing is analysed. */
    OFF,
    /** The task is opened, and the daemon says that its deadlines are not proven. */
    WARN,
    /** The task is refused. */
    ENFORCE;

    /**
     * The mode of a word.
     *
     * @param word off, warn or enforce
     * @return the mode
     * @throws IllegalArgumentException if it is another word
     */
    public static AdmissionMode named(final String word) {
        for (final AdmissionMode mode : values()) {
            if (mode.word().equals(word)) {
                return mode;
            }
        }
        throw new IllegalArgumentException("admission \"" + word + "\" is unknown; use off, warn or enforce");
    }

    /** The word on the command line and in the status, in lower case. */
    public String word() {
        return name().toLowerCase(Locale.ROOT);
    }
}
