/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * /proc/PID/stat and status, read into memory that is kept ({@link ProcFile}): the daemon asks for start time, user and
 * groups of processes whenever one comes or goes. Each thread has one; it allocates only itself, and a list of groups.
 *
 * <p>Source: proc_pid_stat(5), proc_pid_status(5).
 */
final class StatFile {
    /** Number of the field that names the parent. */
    static final int PARENT = 4;
    /** Number of the field that says when the process was started, in clock ticks since boot. */
    static final int START = 22;

    /** Enough for the first 22 fields with the longest values, and for the lines up to 300 groups. */
    private static final int TEXT_BYTES = 4096;
    private static final int TEN = 10;
    private static final String STAT = "stat";
    private static final String STATUS = "status";
    private static final byte[] USER = "\nUid:\t".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] GROUPS = "\nGroups:\t".getBytes(StandardCharsets.US_ASCII);
    /** The first field behind the command. */
    private static final int STATE = 3;
    private static final ThreadLocal<StatFile> OF_THREAD = ThreadLocal.withInitial(StatFile::new);

    private final byte[] text = new byte[TEXT_BYTES];

    private StatFile() {
    }

    /**
     * A field of a process.
     *
     * @param pid    the process
     * @param number of the field as in proc_pid_stat(5), 4 or more
     * @return its value, 0 if there is no such process
     */
    static long field(final int pid, final int number) {
        final StatFile file = OF_THREAD.get();
        return field(file.text, file.read(pid, STAT), number);
    }

    /**
     * The real user of a process.
     *
     * @param pid the process
     * @return uid, -1 if there is no such process
     */
    static int user(final int pid) {
        final StatFile file = OF_THREAD.get();
        return user(file.text, file.read(pid, STATUS));
    }

    /** How many bytes were read; 0 if there is no such process. */
    private int read(final int pid, final String name) {
        final ProcFile file = ProcFile.ofThread();
        final int length = Math.max(0, file.read(pid, name));
        file.content().get(0, text, 0, length);
        return length;
    }

    /** The same of text that was read. */
    static long field(final byte[] text, final int length, final int number) {
        int at = length - 1;
        while (at >= 0 && text[at] != ')') {   // the command may itself contain blanks and parentheses
            at--;
        }
        if (at < 0) {
            return 0;
        }
        at++;
        for (int blanks = STATE - 1; blanks < number && at < length; at++) {
            blanks += text[at] == ' ' ? 1 : 0;
        }
        return number(text, length, at);
    }

    private static long number(final byte[] text, final int length, final int from) {
        long value = 0;
        for (int at = from; at < length && isDigit(text[at]); at++) {
            value = value * TEN + text[at] - '0';
        }
        return value;
    }

    private static boolean isDigit(final byte character) {
        return character >= '0' && character <= '9';
    }

    /** The same of text that was read. The kernel writes a line end in a process's name as two characters. */
    static int user(final byte[] text, final int length) {
        final int at = behind(USER, text, length);
        return at < 0 ? -1 : (int) number(text, length, at);
    }

    /**
     * The supplementary groups of a process.
     *
     * @param pid the process
     * @return their numbers, empty if there is no such process; null if there are too many for the memory
     */
    static List<Integer> groups(final int pid) {
        final StatFile file = OF_THREAD.get();
        return groups(file.text, file.read(pid, STATUS));
    }

    /** The same of text that was read. */
    static List<Integer> groups(final byte[] text, final int length) {
        final List<Integer> groups = new ArrayList<>();
        int at = behind(GROUPS, text, length);
        if (at < 0) {
            return length < TEXT_BYTES ? groups : null;
        }
        while (at < length && text[at] != '\n') {
            if (isDigit(text[at])) {
                groups.add((int) number(text, length, at));
                while (at < length && isDigit(text[at])) {
                    at++;
                }
            } else {
                at++;
            }
        }
        return at < length ? groups : null;
    }

    private static int behind(final byte[] label, final byte[] text, final int length) {
        for (int at = 0; at + label.length < length; at++) {
            if (Arrays.equals(text, at, at + label.length, label, 0, label.length)) {
                return at + label.length;
            }
        }
        return -1;
    }
}
