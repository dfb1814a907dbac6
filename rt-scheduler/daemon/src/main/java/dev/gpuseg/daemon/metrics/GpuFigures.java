/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/** One GPU. Guarded by the {@link LiveModel}. */
final class GpuFigures {
    final GpuTime time = new GpuTime();
    int waiting;
    int preempted;
    /** A real-time segment that may run, a key; -1 if there is none. */
    int holder = -1;
    /** When a segment last left the GPU: earlier than that, the next one was not decided. */
    long lastLeftNs;
    final Rate busyRate = new Rate();
    final Latency enforcement = new Latency();
}
