/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Reads facts about a process from /proc. */
public final class ProcessStatus {
    private ProcessStatus() {
    }

    /**
     * When a process was started. Together with the pid this identifies a process even if the pid is reused.
     *
     * @param pid the process
     * @return field 22 of /proc/pid/stat (clock ticks since boot), or 0 if there is no such process
     */
    public static long startTicks(final int pid) {
        return StatFile.field(pid, StatFile.START);
    }

    /**
     * The parent of a process.
     *
     * @param pid the process
     * @return its parent's pid, 0 if it has none or has ended
     */
    public static int parent(final int pid) {
        return (int) StatFile.field(pid, StatFile.PARENT);
    }

    /**
     * Name of a process as the kernel keeps it. A process can change its own name, so do not rely on it.
     *
     * @param pid the process
     * @return from /proc/pid/comm, at most 15 bytes; empty if the process has ended
     */
    public static String commandName(final int pid) {
        final ProcFile file = ProcFile.ofThread();
        if (file.read(pid, "comm") <= 0) {
            return "";
        }
        // the process chose it: any bytes but NUL
        return PlainText.of(StandardCharsets.UTF_8.decode(file.content()).toString().strip());
    }

    /**
     * Whether a process runs a program. Makes no object.
     *
     * @param pid  the process
     * @param name of the program's file, ASCII, without its directory
     * @return false also if the process has ended or may not be examined
     */
    public static boolean runs(final int pid, final String name) {
        final ProcFile file = ProcFile.ofThread();
        final int from = file.readLink(pid, "exe") - name.length();
        boolean same = from > 0 && file.content().get(from - 1) == '/';
        for (int i = 0; same && i < name.length(); i++) {
            same = file.content().get(from + i) == name.charAt(i);
        }
        return same;
    }

    /**
     * Whether a process exists and has the given start time.
     *
     * @param pid        the process
     * @param startTicks its start, 0 = any
     * @return false if it has ended or the pid belongs to another process now
     */
    public static boolean isAlive(final int pid, final long startTicks) {
        final long ticks = startTicks(pid);
        return ticks != 0 && (startTicks == 0 || ticks == startTicks);
    }

    /**
     * Sends a signal.
     *
     * @param pid    the process
     * @param signal the signal, 0 = only ask
     * @return false if there is no such process
     */
    public static boolean signal(final int pid, final int signal) {
        if (LibC.kill(pid, signal) == 0) {
            return true;
        }
        final int errno = Native.getLastError();
        if (errno == Errno.ESRCH) {
            return false;
        }
        throw new SystemCallException("kill", pid + ", " + signal, errno);
    }

    /**
     * The supplementary groups of a process.
     *
     * @param pid the process
     * @return their numbers, empty if it does not exist
     */
    public static List<Integer> groups(final int pid) {
        final List<Integer> few = StatFile.groups(pid);
        return few != null ? few : manyGroups(pid);
    }

    private static List<Integer> manyGroups(final int pid) {
        try {
            // the line ends with a blank; the name of the process is another line, whatever is in it
            return BoundedFile.lines(Path.of("/proc", Integer.toString(pid), "status"), StandardCharsets.ISO_8859_1)
                .stream().filter(line -> line.startsWith("Groups:")).limit(1)
                .flatMap(line -> Stream.of(line.substring("Groups:".length()).strip().split(" ")))
                .filter(word -> !word.isEmpty()).map(Integer::parseUnsignedInt).toList();
        } catch (final IOException e) {
            return List.of();
        }
    }

    /**
     * The real user of a process: whose it is, also while it runs with the rights of another.
     *
     * @param pid the process
     * @return uid, -1 if there is no such process
     */
    public static int uid(final int pid) {
        return StatFile.user(pid);
    }

    /** The effective user of this process; uid. */
    public static int effectiveUid() {
        return LibC.geteuid();
    }

    /** The effective group of this process; gid. */
    public static int effectiveGid() {
        return LibC.getegid();
    }

    /** The pid of this process. */
    public static int pid() {
        return (int) ProcessHandle.current().pid();
    }
}
