/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

/** One task, open or closed a while ago. Times are CLOCK_MONOTONIC ns. Guarded by the {@link LiveModel}. */
final class TaskFigures {
    /** Number of the task in this model; never used again. */
    final int key;
    final String name;
    final int pid;
    final int gpu;
    final TaskObserver observer;
    String client = "";
    int taskId;
    int contextId;
    int priority;
    int gpuPriority;
    long periodNs;
    long deadlineNs;
    long budgetNs;

    TaskState state = TaskState.IDLE;
    long stateSinceNs;
    /** Who took it off the GPU, a key; only while preempted. */
    int preemptedBy = -1;
    long closedNs;

    long beginNs;
    long beginEventNs;
    boolean waitMeasured;
    long segmentDeadlineNs;
    MissLog.Entry openMiss;
    boolean segmentOpen;

    long begins;
    long segments;
    long cancels;
    final JobAccount account = new JobAccount();
    long deadlineMisses;
    long overruns;
    long preemptions;
    long lastPreemptNs;
    String lastPreemptBy = "";
    /** GPU time of the segments that are over; what the running one adds stands in {@link GpuFigures#shareNs}. */
    double busyNs;
    double shareAtStartNs;

    final TaskLatencies latencies;
    final Rate busyRate = new Rate();
    final Rate segmentRate = new Rate();
    final Rate jobRate = new Rate();

    TaskFigures(final int key, final String name, final int pid, final int gpu, final TaskObserver observer,
        final TaskLatencies latencies) {
        this.key = key;
        this.name = name;
        this.pid = pid;
        this.gpu = gpu;
        this.observer = observer;
        this.latencies = latencies;
    }

    boolean isOpen() {
        return state != TaskState.CLOSED;
    }

    /** Bytes that its histograms take. */
    int bytes() {
        return latencies.bytes();
    }
}
