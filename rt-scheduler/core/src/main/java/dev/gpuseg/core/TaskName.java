/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** What may be the name of a task: the same in files, on command lines and where programs register. Stateless. */
public final class TaskName {
    /** Longest, in UTF-8. */
    public static final int BYTES_MAX = 63;

    /** First characters with two, three and four bytes in UTF-8. */
    private static final int TWO = 0x80;
    private static final int THREE = 0x800;
    private static final int FOUR = 0x10000;

    private TaskName() {
    }

    /**
     * Why a text cannot be a name.
     *
     * @param text the text
     * @return value and remedy, to stand after what the text is; null if it can
     */
    public static String refusal(final String text) {
        final int bytes = text.codePoints().map(c -> c < TWO ? 1 : c < THREE ? 2 : c < FOUR ? 3 : 4).sum();
        if (bytes > BYTES_MAX) {
            return "has " + bytes + " bytes of UTF-8; a program cannot register a name of more than " + BYTES_MAX
                + ": shorten it";
        }
        return text.isBlank() || !text.codePoints().allMatch(TaskName::isPlain)
            ? "is blank or has characters that cannot be printed; write 1.." + BYTES_MAX + " bytes of printable UTF-8"
            : null;
    }

    /**
     * Whether a character may stand in a name.
     *
     * @param codePoint the character
     * @return false for control, format and private characters, line ends and half surrogate pairs
     */
    public static boolean isPlain(final int codePoint) {
        switch (Character.getType(codePoint)) {
            case Character.CONTROL:
            case Character.FORMAT:
            case Character.SURROGATE:
            case Character.UNASSIGNED:
            case Character.PRIVATE_USE:
            case Character.LINE_SEPARATOR:
            case Character.PARAGRAPH_SEPARATOR:
                return false;
            default:
                return true;
        }
    }
}
