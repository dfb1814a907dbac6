/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Which tasks may begin without waiting. Tasks that qualify at all stand in lists by GPU and priority, so that a new
 * bound touches only tasks whose pre-grant changes with it.
 */
final class PregrantTable {
    private static final int NONE = -1;
    private static final int LEVELS = Priority.MAX + 1;
    private static final int WORDS = (LEVELS + Long.SIZE - 1) / Long.SIZE;

    private final SegmentTable segments;
    private final DecisionSink sink;

    private final boolean[] listed;
    private final int[] level;
    private final int[] gpuOf;
    private final boolean[] pregranted;
    /** It has room of its own, so no bound holds for it. */
    private final boolean[] unbounded;
    private final int[] next;
    private final int[] previous;
    private final int[] first;
    /** A bit for each list that is not empty, two words a GPU. */
    private final long[] inUse;

    private final int[] ceiling;
    /** The leading task of each GPU does not stand in its own way: its bound is that of the best of the others. */
    private final int[] leader;
    private final int[] leaderCeiling;

    PregrantTable(final SegmentTable segments, final DecisionSink sink, final int maxTasks, final int gpuCount) {
        this.segments = segments;
        this.sink = sink;
        listed = new boolean[maxTasks + 1];
        level = new int[maxTasks + 1];
        gpuOf = new int[maxTasks + 1];
        pregranted = new boolean[maxTasks + 1];
        unbounded = new boolean[maxTasks + 1];
        next = new int[maxTasks + 1];
        previous = new int[maxTasks + 1];
        first = new int[gpuCount * LEVELS];
        inUse = new long[gpuCount * WORDS];
        ceiling = new int[gpuCount];
        leader = new int[gpuCount];
        leaderCeiling = new int[gpuCount];
        java.util.Arrays.fill(first, NONE);
        java.util.Arrays.fill(ceiling, Priority.BELOW_ALL);
        java.util.Arrays.fill(leader, NONE);
        java.util.Arrays.fill(leaderCeiling, Priority.BELOW_ALL);
    }

    boolean isPregranted(final int task) {
        return pregranted[task];
    }

    boolean isListed(final int task) {
        return listed[task];
    }

    /** A task of a GPU that qualifies and has this priority, -1 = none; {@link #next} gives the others. */
    int first(final int gpu, final int priority) {
        return first[gpu * LEVELS + priority];
    }

    int next(final int task) {
        return next[task];
    }

    /** The lowest priority of at least this that a task which qualifies has; above all priorities if there is none. */
    int levelFrom(final int gpu, final int priority) {
        for (int word = priority / Long.SIZE; word < WORDS; word++) {
            final long from = word == priority / Long.SIZE ? -1L << priority : -1L;
            final long bits = inUse[gpu * WORDS + word] & from;
            if (bits != 0) {
                return word * Long.SIZE + Long.numberOfTrailingZeros(bits);
            }
        }
        return LEVELS;
    }

    /** The task qualifies, or not any more; {@link #refresh} is to follow. */
    void qualify(final int task, final int gpu, final boolean qualifies) {
        if (segments.reserved[task]) {
            unbounded[task] = qualifies;
            return;
        }
        if (listed[task]) {
            unlist(task);
        }
        if (qualifies) {
            list(task, gpu);
        }
    }

    /** The priority of the task changed; {@link #refresh} is to follow. */
    void relist(final int task) {
        if (listed[task]) {
            unlist(task);
            list(task, gpuOf[task]);
        }
    }

    /** The task is closed; the sink is not told. */
    void forget(final int task) {
        if (listed[task]) {
            unlist(task);
        }
        pregranted[task] = false;
        unbounded[task] = false;
        for (int g = 0; g < leader.length; g++) {
            if (leader[g] == task) {
                leader[g] = NONE;
            }
        }
    }

    /** New bounds for a GPU. */
    void bound(final int gpu, final int newCeiling, final int newLeader, final int newLeaderCeiling) {
        final int oldCeiling = ceiling[gpu];
        final int oldLeader = leader[gpu];
        ceiling[gpu] = newCeiling;
        leader[gpu] = newLeader;
        leaderCeiling[gpu] = newLeaderCeiling;
        if (oldCeiling != newCeiling) {
            final int low = Math.min(oldCeiling, newCeiling);
            final int high = Math.max(oldCeiling, newCeiling);
            for (int p = levelFrom(gpu, low + 1); p <= high; p = levelFrom(gpu, p + 1)) {
                for (int t = first[gpu * LEVELS + p]; t != NONE; t = next[t]) {
                    refresh(t);
                }
            }
        }
        if (oldLeader != NONE && oldLeader != newLeader) {
            refresh(oldLeader);
        }
        if (newLeader != NONE) {
            refresh(newLeader);
        }
    }

    /** Tells the sink if the pre-grant of the task changed. */
    void refresh(final int task) {
        boolean wanted = unbounded[task];
        if (listed[task]) {
            final int gpu = gpuOf[task];
            wanted = Priority.isHigherThan(level[task], leader[gpu] == task ? leaderCeiling[gpu] : ceiling[gpu]);
        }
        if (wanted != pregranted[task]) {
            pregranted[task] = wanted;
            sink.onPregrant(task, wanted);
        }
    }

    private void list(final int task, final int gpu) {
        listed[task] = true;
        gpuOf[task] = gpu;
        level[task] = segments.gpuPriority[task];
        final int head = gpu * LEVELS + level[task];
        previous[task] = NONE;
        next[task] = first[head];
        if (first[head] != NONE) {
            previous[first[head]] = task;
        }
        first[head] = task;
        inUse[gpu * WORDS + level[task] / Long.SIZE] |= 1L << level[task];
    }

    private void unlist(final int task) {
        listed[task] = false;
        if (previous[task] == NONE) {
            first[gpuOf[task] * LEVELS + level[task]] = next[task];
            if (next[task] == NONE) {
                inUse[gpuOf[task] * WORDS + level[task] / Long.SIZE] &= ~(1L << level[task]);
            }
        } else {
            next[previous[task]] = next[task];
        }
        if (next[task] != NONE) {
            previous[next[task]] = previous[task];
        }
    }
}
