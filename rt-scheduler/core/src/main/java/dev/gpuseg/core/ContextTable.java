/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** One row per context id, and for each GPU the list of contexts that may be disabled. */
final class ContextTable {
    static final int NONE = -1;

    final boolean[] open;
    final ContextKind[] kind;
    final int[] gpu;
    /** What the sink was last told; a new context is on. */
    final boolean[] desired;
    /** Reported disabled, and not enabled since. */
    final boolean[] off;
    final int[] taskCount;
    /** Its tasks have room of their own, so it stays on the hardware. All of them, or none. */
    final boolean[] reserved;
    /** Time partition of its tasks; 0 = none. */
    final int[] partition;
    /** Whose weight and cap hold for it. */
    final int[] group;
    /** Begun segments of it that overran and are suspended. */
    final int[] suspended;

    // Scratch of one decision; valid where seen[c] is the number of that decision.
    final long[] seen;
    final boolean[] admitted;
    final int[] firstGranted;
    /** The decision that last found a begun segment in this context. */
    final long[] begunIn;
    /** Held back whatever the policy's order says; false for all contexts of a GPU that holds none back. */
    final boolean[] blocked;
    /** The decision that last made this context an exception to its GPU's background. */
    final long[] exception;

    private final int[] firstTask;
    private final int[] nextTask;
    private final int[] previousTask;

    private final int[] reservedCount;
    private long reservedVersion;

    private final int[][] steerable;
    private final int[] steerableCount;
    private final int[] steerablePosition;

    ContextTable(final int maxContexts, final int maxTasks, final int gpuCount) {
        final int rows = maxContexts + 1;
        open = new boolean[rows];
        kind = new ContextKind[rows];
        gpu = new int[rows];
        desired = new boolean[rows];
        off = new boolean[rows];
        taskCount = new int[rows];
        reserved = new boolean[rows];
        partition = new int[rows];
        group = new int[rows];
        suspended = new int[rows];
        blocked = new boolean[rows];
        begunIn = new long[rows];
        seen = new long[rows];
        admitted = new boolean[rows];
        firstGranted = new int[rows];
        exception = new long[rows];
        firstTask = new int[rows];
        nextTask = new int[maxTasks + 1];
        previousTask = new int[maxTasks + 1];
        reservedCount = new int[gpuCount];
        steerable = new int[gpuCount][rows];
        steerableCount = new int[gpuCount];
        steerablePosition = new int[rows];
        java.util.Arrays.fill(steerablePosition, NONE);
    }

    void add(final int c, final int onGpu, final ContextKind ofKind) {
        open[c] = true;
        kind[c] = ofKind;
        gpu[c] = onGpu;
        desired[c] = true;
        off[c] = false;
        taskCount[c] = 0;
        reserved[c] = false;
        firstTask[c] = NONE;
        exception[c] = 0;
        seen[c] = 0;
        partition[c] = 0;
        suspended[c] = 0;
        blocked[c] = false;
        begunIn[c] = 0;
    }

    void remove(final int c) {
        setSteerable(c, false);
        setReserved(c, false);
        open[c] = false;
        kind[c] = null;
    }

    void setReserved(final int c, final boolean wanted) {
        if (reserved[c] != wanted) {
            reserved[c] = wanted;
            reservedCount[gpu[c]] += wanted ? 1 : -1;
            reservedVersion++;
        }
    }

    /** The reserved contexts of a GPU; returns how many. */
    int reserved(final int onGpu, final int[] out) {
        int n = 0;
        for (int c = 0; n < reservedCount[onGpu]; c++) {
            if (reserved[c] && gpu[c] == onGpu) {
                out[n++] = c;
            }
        }
        return n;
    }

    long reservedVersion() {
        return reservedVersion;
    }

    /** Whether it may be disabled. */
    boolean isSteerable(final int c) {
        return steerablePosition[c] != NONE;
    }

    void setSteerable(final int c, final boolean wanted) {
        final int at = steerablePosition[c];
        if (wanted == (at != NONE)) {
            return;
        }
        final int[] list = steerable[gpu[c]];
        if (wanted) {
            list[steerableCount[gpu[c]]] = c;
            steerablePosition[c] = steerableCount[gpu[c]]++;
        } else {
            final int last = list[--steerableCount[gpu[c]]];
            list[at] = last;
            steerablePosition[last] = at;
            steerablePosition[c] = NONE;
        }
    }

    void unblockAll(final int onGpu) {
        for (int c = 0; c < blocked.length; c++) {
            blocked[c] = blocked[c] && gpu[c] != onGpu;
        }
    }

    int steerableCount(final int onGpu) {
        return steerableCount[onGpu];
    }

    int steerable(final int onGpu, final int index) {
        return steerable[onGpu][index];
    }

    int firstTask(final int c) {
        return firstTask[c];
    }

    int nextTask(final int task) {
        return nextTask[task];
    }

    void linkTask(final int c, final int task) {
        previousTask[task] = NONE;
        nextTask[task] = firstTask[c];
        if (firstTask[c] != NONE) {
            previousTask[firstTask[c]] = task;
        }
        firstTask[c] = task;
        taskCount[c]++;
    }

    void unlinkTask(final int c, final int task) {
        if (previousTask[task] == NONE) {
            firstTask[c] = nextTask[task];
        } else {
            nextTask[previousTask[task]] = nextTask[task];
        }
        if (nextTask[task] != NONE) {
            previousTask[nextTask[task]] = previousTask[task];
        }
        taskCount[c]--;
    }
}
