/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/**
 * The durations of one task, which take most of its memory. They are used again for another task when it is forgotten:
 * figures that live for minutes are what a collection has to copy. Guarded by the {@link LiveModel}.
 */
final class TaskLatencies {
    final Latency waits = new Latency();
    final Latency responses = new Latency();
    final Latency jobResponses = new Latency();

    /** Begins with another task. */
    void clear() {
        waits.clear();
        responses.clear();
        jobResponses.clear();
    }

    /** Bytes that they take. */
    int bytes() {
        return waits.bytes() + responses.bytes() + jobResponses.bytes();
    }
}
