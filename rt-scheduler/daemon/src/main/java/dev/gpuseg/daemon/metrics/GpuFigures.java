/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/**
 * One GPU. Its time is divided equally among the segments that may run at a moment: exact while a real-time segment
 * holds it alone, an estimate while several share it. Guarded by the {@link LiveModel}.
 */
final class GpuFigures {
    int running;
    int waiting;
    int preempted;
    /** A real-time segment that may run, a key; -1 if there is none. */
    int holder = -1;
    /** When a segment last left the GPU: earlier than that, the next one was not decided. */
    long lastLeftNs;
    long disabledContexts;
    /** Time in which at least one segment was let run. */
    long busyNs;
    final Rate busyRate = new Rate();
    final Latency enforcement = new Latency();
    /** What one segment would have got had it run all the time. */
    private double shareNs;
    private long atNs;

    /** Moves the account to a moment; an earlier one changes nothing. */
    void advance(final long timeNs) {
        if (timeNs - atNs > 0) {
            if (running > 0 && atNs != 0) {
                shareNs += (double) (timeNs - atNs) / running;
                busyNs += timeNs - atNs;
            }
            atNs = timeNs;
        }
    }

    /** The account as it will be at a moment if nothing happens until then. */
    double shareNs(final long timeNs) {
        return running > 0 && timeNs - atNs > 0 ? shareNs + (double) (timeNs - atNs) / running : shareNs;
    }

    long busyNs(final long timeNs) {
        return running > 0 && timeNs - atNs > 0 ? busyNs + timeNs - atNs : busyNs;
    }
}
