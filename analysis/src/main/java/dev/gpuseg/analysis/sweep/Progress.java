/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.io.PrintStream;
import java.util.Locale;

/** Prints the progress of a long run and the time left, at most twice a second. Thread-safe. */
public final class Progress {
    private static final long PAUSE_NS = 500_000_000L;

    private final PrintStream out;
    private final String what;
    private final long total;
    private final long startedNs = System.nanoTime();
    private long done;
    private long skipped;
    private long lastNs = startedNs - PAUSE_NS;

    /**
     * Starts the clock.
     *
     * @param out   where to write, or null for silence
     * @param what  unit of the count, such as {@code sets}
     * @param total how many there are
     */
    public Progress(final PrintStream out, final String what, final long total) {
        this.out = out;
        this.what = what;
        this.total = total;
    }

    /**
     * Counts work that is done.
     *
     * @param count how many
     */
    public synchronized void add(final long count) {
        done += count;
        final long now = System.nanoTime();
        if (now - lastNs >= PAUSE_NS || done == total) {
            lastNs = now;
            print(now);
        }
    }

    /**
     * Counts work that an earlier run did; it does not count for the speed.
     *
     * @param count how many
     */
    public synchronized void skip(final long count) {
        skipped += count;
        add(count);
    }

    /** Ends the line. */
    public synchronized void close() {
        if (out != null) {
            print(System.nanoTime());
            out.println();
        }
    }

    private void print(final long now) {
        if (out == null) {
            return;
        }
        final double seconds = (now - startedNs) / 1e9;
        final double rate = (done - skipped) / Math.max(seconds, 1e-3);
        final String eta = rate > 0 ? clock((long) ((total - done) / rate)) : "?";
        out.printf(Locale.ROOT, "\r%d/%d %s, %.0f/s, %s elapsed, %s left   ", done, total, what, rate,
            clock((long) seconds),
            eta);
        out.flush();
    }

    private static String clock(final long seconds) {
        return String.format(Locale.ROOT, "%d:%02d:%02d", seconds / 3600, seconds / 60 % 60, seconds % 60);
    }
}
