/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import java.io.IOException;

/** A file that cannot be used. The message is one line: {@code file:line:column: thing, value, remedy}. */
public final class InvalidFileException extends IOException {
    private static final long serialVersionUID = 1L;
    private static final int MAX_TEXT = 400;

    private final int line;
    private final String text;

    /**
     * Creates the exception.
     *
     * @param file    name of the file as the user gave it
     * @param line    line from 1, or 0 if it does not apply
     * @param message what is wrong and what to do; control characters are replaced
     */
    public InvalidFileException(final String file, final int line, final String message) {
        this(file, line, 0, message);
    }

    /**
     * Creates the exception for a place within a line.
     *
     * @param file    name of the file as the user gave it
     * @param line    line from 1, or 0 if it does not apply
     * @param column  column from 1, or 0 if it does not apply
     * @param message what is wrong and what to do; control characters are replaced
     */
    public InvalidFileException(final String file, final int line, final int column, final String message) {
        super(place(file, line, column) + ": " + oneLine(message));
        this.line = line;
        text = oneLine(message);
    }

    /** Where; line from 1, or 0 if it does not apply. */
    public int line() {
        return line;
    }

    /** The message without its place; one line. */
    public String text() {
        return text;
    }

    private static String place(final String file, final int line, final int column) {
        return line <= 0 ? file : file + ":" + line + (column > 0 ? ":" + column : "");
    }

    private static String oneLine(final String text) {
        final String flat = text.replaceAll("\\s+", " ").replaceAll("\\p{Cntrl}", "?").trim();
        return flat.length() <= MAX_TEXT ? flat : flat.substring(0, MAX_TEXT - 3) + "...";
    }
}
