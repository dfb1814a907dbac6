/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/**
 * The time of one GPU, divided equally among the segments that may run at a moment: exact while a real-time segment
 * holds it alone, an estimate while several share it. The running daemon and the reader of recordings count with it.
 * Times are ns of CLOCK_MONOTONIC. Not thread-safe.
 */
public final class GpuTime {
    private int running;
    /** Time in which at least one segment was let run. */
    private long busyNs;
    /** What one segment would have got had it run all the time. */
    private double shareNs;
    private long atNs;

    /** Nothing runs yet. */
    public GpuTime() {
    }

    /**
     * A segment may run from now on.
     *
     * @param timeNs when; earlier than the last event counts as that one
     * @return the account at that moment: what the segment gets is the difference to the account at its end
     */
    public double enter(final long timeNs) {
        advance(timeNs);
        running++;
        return shareNs;
    }

    /**
     * A segment may not run any more; a time earlier than the last event counts as that one. Returns the account then.
     */
    public double leave(final long timeNs) {
        advance(timeNs);
        running--;
        return shareNs;
    }

    private void advance(final long timeNs) {
        if (timeNs - atNs > 0) {
            if (running > 0 && atNs != 0) {
                shareNs += (double) (timeNs - atNs) / running;
                busyNs += timeNs - atNs;
            }
            atNs = timeNs;
        }
    }

    /** How many segments may run. */
    public int running() {
        return running;
    }

    /** The account as it will be at a moment if nothing happens until then, ns. */
    public double shareNs(final long timeNs) {
        return running > 0 && timeNs - atNs > 0 ? shareNs + (double) (timeNs - atNs) / running : shareNs;
    }

    /** Time in which at least one segment was let run, until a moment at which nothing has changed, ns. */
    public long busyNs(final long timeNs) {
        return running > 0 && timeNs - atNs > 0 ? busyNs + timeNs - atNs : busyNs;
    }
}
