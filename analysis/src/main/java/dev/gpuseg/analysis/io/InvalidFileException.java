/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.IOException;

/** A file that cannot be used. The message is one line: {@code file:line: thing, value, remedy}. */
public final class InvalidFileException extends IOException {
    private static final long serialVersionUID = 1L;

    /**
     * Creates the exception.
     *
     * @param file    name of the file as the user gave it
     * @param line    line from 1, or 0 if it does not apply
     * @param message what is wrong and what to do; control characters are replaced
     */
    public InvalidFileException(final String file, final int line, final String message) {
        super((line > 0 ? file + ":" + line : file) + ": " + oneLine(message));
    }

    private static String oneLine(final String text) {
        final String flat = text.replaceAll("\\s+", " ").replaceAll("\\p{Cntrl}", "?").trim();
        return flat.length() <= 400 ? flat : flat.substring(0, 397) + "...";
    }
}
