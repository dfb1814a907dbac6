/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * When what the observer saw reached this process, and when a mechanism knew the channels: one line for each, for
 * measurements with rt-scheduler/native/observer/bench/arrivals.py. All times are CLOCK_MONOTONIC ns.
 *
 * <pre>
 *   record KIND PID CLIENT HANDLE CLASS EVENT_NS PASSED_NS RECEIVED_NS TAKEN_NS
 *   WHAT PID NS
 *     WHAT: announced, known, searched, told, disabled; asking and asked, around an examination; applying, locked and
 *     applied, the enforcer's steps, with pid 0
 * </pre>
 *
 * <p>Any thread writes; {@link #close} when none does any more.
 */
public final class ArrivalLog implements AutoCloseable {
    /** Property: the file; nothing is written without it. */
    public static final String PROPERTY = "gpuseg.observer.log";

    private final PrintWriter out;

    private ArrivalLog(final PrintWriter out) {
        this.out = out;
    }

    /** The log that the property asks for; one that writes nothing if it is not set or the file cannot be written. */
    public static ArrivalLog ofProperty() {
        final String path = System.getProperty(PROPERTY, "");
        if (path.isEmpty()) {
            return new ArrivalLog(null);
        }
        try {
            return new ArrivalLog(new PrintWriter(Files.newBufferedWriter(Path.of(path), StandardCharsets.US_ASCII)));
        } catch (final IOException e) {
            System.err.println("gpuseg: " + PROPERTY + "=" + path + " cannot be written: " + e.getMessage());
            return new ArrivalLog(null);
        }
    }

    /**
     * A record is acted upon now.
     *
     * @param o the record
     */
    public void record(final Observation o) {
        if (out != null) {
            out.printf("record %s %d %x %x %x %d %d %d %d%n", o.kind(), o.pid(), o.client(), o.handle(), o.classId(),
                o.timeNs(), Integer.toUnsignedLong(o.passedNs()), o.receivedNs(), System.nanoTime());
        }
    }

    /**
     * Something follows from what was seen.
     *
     * @param what one word
     * @param pid  the process
     */
    public void note(final String what, final int pid) {
        if (out != null) {
            out.printf("%s %d %d%n", what, pid, System.nanoTime());
        }
    }

    @Override
    public void close() {
        if (out != null) {
            out.close();
        }
    }
}
