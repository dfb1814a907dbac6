/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

/**
 * Receives the schedule of a run, interval by interval, in order of their ends. Tasks are indices into the task set,
 * times nanoseconds since the start of the run.
 */
public interface TraceSink {
    /** What a core or a GPU does in an interval. */
    enum Activity {
        /** Core: a CPU segment. */
        CPU,
        /** Core: the host part of a GPU segment. */
        HOST,
        /** Core: spinning, for the grant or for the GPU. */
        SPIN,
        /** GPU: the device part of a segment. */
        DEVICE,
        /** GPU: a switch between contexts that share it in time slices; the task is the one that comes. */
        SWITCH,
        /** GPU: its runlist is rewritten; the task is -1. */
        UPDATE,
        /** Thread: between begin and grant. */
        WAITING,
        /** Thread: between grant and end, the segment runs. */
        HOLDING,
        /** Thread: between grant and end, the segment is preempted on the GPU. */
        PREEMPTED
    }

    /**
     * A core did something.
     *
     * @param cpu      core, from 1
     * @param task     index of the task
     * @param activity CPU, HOST or SPIN
     * @param fromNs   start
     * @param toNs     end, after the start
     */
    void onCpu(int cpu, int task, Activity activity, long fromNs, long toNs);

    /**
     * A GPU did something.
     *
     * @param gpu      index of the GPU
     * @param task     index of the task, -1 for an update
     * @param activity DEVICE, SWITCH or UPDATE
     * @param fromNs   start
     * @param toNs     end, after the start
     */
    void onGpu(int gpu, int task, Activity activity, long fromNs, long toNs);

    /**
     * A segment was in one state.
     *
     * @param gpu      index of the GPU
     * @param task     index of the task
     * @param activity WAITING, HOLDING or PREEMPTED
     * @param fromNs   start
     * @param toNs     end, after the start
     */
    void onSegment(int gpu, int task, Activity activity, long fromNs, long toNs);

    /**
     * A job ended.
     *
     * @param task      index of the task
     * @param arrivalNs when it arrived
     * @param endNs     when it ended
     * @param missed    true if that was after its deadline
     */
    void onJob(int task, long arrivalNs, long endNs, boolean missed);
}
