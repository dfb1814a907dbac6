/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/**
 * What a daemon holds at one moment.
 *
 * @param pid         of the daemon
 * @param clients     registered
 * @param tasks       open
 * @param descriptors open
 * @param threads     alive
 * @param residentKib memory that it occupies, in KiB
 */
record Footprint(long pid, int clients, int tasks, int descriptors, int threads, long residentKib) {
    /** For a connection, cycles of queues (two descriptors each) and a file of the journal that are open just now. */
    static final int DESCRIPTORS_SLACK = 18;
    static final int THREADS_SLACK = 8;
    /** Compiled code, classes, and a heap that is locked in memory and not yet touched in full. */
    static final long RESIDENT_SLACK_KIB = 192 << 10;

    /**
     * Takes it.
     *
     * @param pid    of a daemon that lives
     * @param status what it says
     * @throws IOException if its entry in {@code /proc} cannot be read
     */
    static Footprint of(final long pid, final JsonNode status) throws IOException {
        final Path process = Path.of("/proc", Long.toString(pid));
        int threads = 0;
        long residentKib = 0;
        for (final String line : Files.readAllLines(process.resolve("status"))) {
            if (line.startsWith("Threads:")) {
                threads = (int) number(line);
            } else if (line.startsWith("VmRSS:")) {
                residentKib = number(line);
            }
        }
        try (Stream<Path> open = Files.list(process.resolve("fd"))) {
            return new Footprint(pid, status.path("clients").size(), status.path("tasks").size(), (int) open.count(),
                threads, residentKib);
        }
    }

    private static long number(final String line) {
        return Long.parseLong(line.replaceAll("[^0-9]", ""));
    }

    /**
     * What it holds beyond an earlier one of the same daemon, and beyond the clients that there are.
     *
     * @param first   of the same daemon
     * @param present clients with one task each that there are
     * @return one line, empty if nothing
     */
    String excess(final Footprint first, final int present) {
        final StringBuilder excess = new StringBuilder();
        add(excess, "clients", clients, present);
        add(excess, "tasks", tasks, present);
        add(excess, "descriptors", descriptors, first.descriptors + DESCRIPTORS_SLACK);
        add(excess, "threads", threads, first.threads + THREADS_SLACK);
        add(excess, "KiB of memory", residentKib, first.residentKib + RESIDENT_SLACK_KIB);
        return excess.toString();
    }

    private static void add(final StringBuilder excess, final String what, final long is, final long most) {
        if (is > most) {
            excess.append(excess.length() == 0 ? "" : ", ").append(is).append(' ').append(what).append(" instead of ")
                .append(most).append(" at most");
        }
    }
}
