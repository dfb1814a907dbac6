/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/** What the threads of a process do, by {@code /proc}: evidence of a hang, also where the JVM itself hangs. */
final class ThreadStates {
    // fields of /proc/PID/task/TID/stat after the name, proc(5)
    private static final int STATE = 0;
    private static final int MAJOR_FAULTS = 9;
    private static final int USER_TICKS = 11;
    private static final int KERNEL_TICKS = 12;

    private ThreadStates() {
    }

    /**
     * Looks once. A process whose major page faults grow while it does not go on reads its code again and again.
     *
     * @param pid of any process
     * @return its control groups, then for each thread a line, and its stack in the kernel where root asks; empty if
     *     the process has ended
     */
    static List<String> of(final long pid) {
        final Path process = Path.of("/proc", Long.toString(pid));
        final List<String> lines = new ArrayList<>(read(process.resolve("cgroup")));
        try (Stream<Path> threads = Files.list(process.resolve("task"))) {
            threads.sorted().forEach(thread -> describe(thread, lines));
        } catch (final IOException e) {
            return List.of();
        }
        return lines;
    }

    private static void describe(final Path thread, final List<String> lines) {
        final List<String> stat = read(thread.resolve("stat"));
        if (stat.isEmpty()) {
            return;
        }
        final String[] fields = stat.get(0).substring(stat.get(0).lastIndexOf(')') + 2).split(" ");
        lines.add(String.join("", read(thread.resolve("comm"))) + ": " + fields[STATE] + " in "
            + String.join("", read(thread.resolve("wchan"))) + ", " + fields[MAJOR_FAULTS] + " major faults, "
            + fields[USER_TICKS] + " and " + fields[KERNEL_TICKS] + " ticks of user and kernel time");
        read(thread.resolve("stack")).forEach(frame -> lines.add("    " + frame));
    }

    private static List<String> read(final Path file) {
        try {
            return Files.readAllLines(file);
        } catch (final IOException e) {
            return List.of();   // it has ended, or the file is for root
        }
    }
}
