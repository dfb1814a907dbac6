/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * When a task begins after the end of another one. For a few tasks that ended before the newest begins, it keeps how
 * long before; the one with the least spread is the <em>predecessor</em>, if its spread is small at all. Two tasks
 * that keep the same period for reasons of their own look alike, and the forecast holds for them, too. Integers only,
 * so equal events give equal forecasts; allocates nothing after construction.
 */
final class ChainForecast {
    /** Begins after the end of a task before it can be the predecessor. */
    static final int SAMPLES_MIN = 8;
    /** What ended longer before a begin has nothing to do with it, ns. */
    static final long DELAY_MAX_NS = 100_000_000;
    /** So many tasks that ended last are looked at. */
    static final int RECENT = 4;

    private static final int NONE = SegmentScheduler.NONE;
    private static final int CANDIDATES = 3;
    private static final int WINDOW = 16;
    private static final int ABSENT_MAX = 4;
    private static final int MISSES_MAX = 3;
    private static final int LOW = 100;
    private static final int HALF = 500;
    private static final int HIGH = 900;
    private static final int SPREAD_SHIFT = 2;
    private static final long SPREAD_MIN_NS = 300_000;

    private final int[] candidates = new int[CANDIDATES];
    private final SortedWindow[] delays = new SortedWindow[CANDIDATES];
    /** Begins in a row before which the candidate did not end. */
    private final int[] absent = new int[CANDIDATES];
    private final boolean[] isSeen = new boolean[CANDIDATES];
    private final SortedWindow intervals = new SortedWindow(WINDOW);
    private long lastNs;
    private int chosen = NONE;
    private int missed;

    ChainForecast() {
        for (int i = 0; i < CANDIDATES; i++) {
            delays[i] = new SortedWindow(WINDOW);
        }
        reset();
    }

    /** Starts anew. */
    void reset() {
        for (int i = 0; i < CANDIDATES; i++) {
            clear(i);
        }
        intervals.clear();
        lastNs = 0;
        chosen = NONE;
        missed = 0;
    }

    private void clear(final int i) {
        candidates[i] = NONE;
        delays[i].clear();
        absent[i] = 0;
    }

    /** A task is closed. */
    void forget(final int taskId) {
        for (int i = 0; i < CANDIDATES; i++) {
            if (candidates[i] == taskId) {
                clear(i);
            }
        }
        choose();
    }

    /**
     * A segment of the task began.
     *
     * @param taskId  the task itself
     * @param beginNs when
     * @param ended   real-time tasks that ended before, the newest first, each once
     * @param endedNs when each did
     * @param count   how many
     */
    void begin(final int taskId, final long beginNs, final int[] ended, final long[] endedNs, final int count) {
        if (lastNs != 0 && beginNs > lastNs) {
            intervals.add(beginNs - lastNs);
        }
        for (int k = 0; k < CANDIDATES; k++) {
            isSeen[k] = false;
        }
        for (int i = 0; i < count; i++) {
            // the program's begin can be older than the end that was noticed before it
            final long delayNs = Math.max(0, beginNs - endedNs[i]);
            // an end before the begin before was that one's
            if (ended[i] != taskId && delayNs <= DELAY_MAX_NS && endedNs[i] > lastNs) {
                add(ended[i], delayNs);
            }
        }
        for (int k = 0; k < CANDIDATES; k++) {
            absent[k] = isSeen[k] ? 0 : absent[k] + 1;
        }
        lastNs = beginNs;
        choose();
    }

    private void add(final int from, final long delayNs) {
        int free = NONE;
        for (int k = 0; k < CANDIDATES; k++) {
            if (candidates[k] == from) {
                delays[k].add(delayNs);
                isSeen[k] = true;
                missed = k == chosen ? 0 : missed;
                return;
            }
            if (free == NONE && !isSeen[k] && (candidates[k] == NONE || absent[k] >= ABSENT_MAX)) {
                free = k;
            }
        }
        if (free != NONE) {
            clear(free);
            candidates[free] = from;
            delays[free].add(delayNs);
            isSeen[free] = true;
        }
    }

    private void choose() {
        chosen = NONE;
        for (int k = 0; k < CANDIDATES; k++) {
            if (candidates[k] != NONE && absent[k] < ABSENT_MAX && delays[k].size() >= SAMPLES_MIN
                && spread(k) <= Math.max(SPREAD_MIN_NS, delays[k].quantile(HALF) >> SPREAD_SHIFT)
                && (chosen == NONE || spread(k) < spread(chosen))) {
                chosen = k;
            }
        }
    }

    private long spread(final int k) {
        return delays[k].quantile(HIGH) - delays[k].quantile(LOW);
    }

    /** The task whose ends are followed, {@link SegmentScheduler#NONE} if none is known. */
    int predecessor() {
        return chosen == NONE || missed >= MISSES_MAX ? NONE : candidates[chosen];
    }

    /** How much the delays scatter, ns. Only with a {@link #predecessor}. */
    long spreadNs() {
        return spread(chosen);
    }

    /** From its end to the begin. Only with a {@link #predecessor}. */
    SortedWindow delays() {
        return delays[chosen];
    }

    /** The usual distance of two begins, ns. */
    long periodNs() {
        return Math.max(1, intervals.quantile(HALF));
    }

    /** The expected begin did not come; after a few in a row none is expected until the task follows again. */
    void missed() {
        missed++;
    }
}
