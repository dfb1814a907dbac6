/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import dev.gpuseg.core.TaskName;

/**
 * Text of other users on its way to a terminal, a page, a log or a metric. Characters that do something instead of
 * being seen (control characters and with them escape sequences, marks that reverse the direction of writing) and
 * invisible ones are not plain. Any thread.
 */
public final class PlainText {
    /** Characters of {@link #of} at most. */
    public static final int LENGTH_MAX = 256;
    /** Stands for what is not plain. */
    private static final int REPLACEMENT = '\ufffd';
    private static final String CUT = "...";

    private PlainText() {
    }

    /**
     * Whether a character is plain.
     *
     * @param codePoint the character
     * @return false for control, format and private characters, line ends and half surrogate pairs
     */
    public static boolean isPlain(final int codePoint) {
        return TaskName.isPlain(codePoint);
    }

    /**
     * Makes any text plain, save its line ends and tabs.
     *
     * @param text from anywhere
     * @return the same, or one with replacements
     */
    public static String lines(final String text) {
        if (text.codePoints().allMatch(c -> c == '\n' || c == '\t' || isPlain(c))) {
            return text;
        }
        return text.codePoints().map(c -> c == '\n' || c == '\t' || isPlain(c) ? c : REPLACEMENT)
            .collect(StringBuilder::new, StringBuilder::appendCodePoint, StringBuilder::append).toString();
    }

    /**
     * Makes any text plain.
     *
     * @param text from anywhere
     * @return the same if it is plain and not longer than {@link #LENGTH_MAX}, else with replacements, and cut
     */
    public static String of(final String text) {
        return of(text, LENGTH_MAX);
    }

    /**
     * Makes any text plain.
     *
     * @param text from anywhere
     * @param most characters, beyond which it is cut
     * @return the same if it is plain and not longer, else with replacements, and cut
     */
    public static String of(final String text, final int most) {
        if (text.length() <= most && text.codePoints().allMatch(PlainText::isPlain)) {
            return text;
        }
        final StringBuilder plain = new StringBuilder();
        text.codePoints().limit(most).forEach(c -> plain.appendCodePoint(isPlain(c) ? c : REPLACEMENT));
        return text.codePointCount(0, text.length()) > most ? plain.append(CUT).toString() : plain.toString();
    }
}
