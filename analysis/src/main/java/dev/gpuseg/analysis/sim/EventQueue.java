/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.Arrays;

/**
 * The next event of every source, in order of time: a binary heap over a fixed number of sources, each with at most one
 * pending time. Sources with smaller numbers come first at equal times, which fixes the order of simultaneous events.
 * Nothing is allocated after construction. Not thread-safe.
 */
final class EventQueue {
    static final long NEVER = Long.MAX_VALUE;

    private final long[] timeNs;
    private final int[] heap;
    private final int[] position;
    private int size;

    EventQueue(final int sources) {
        timeNs = new long[sources];
        heap = new int[sources];
        position = new int[sources];
        clear();
    }

    void clear() {
        Arrays.fill(timeNs, NEVER);
        Arrays.fill(position, -1);
        size = 0;
    }

    /** Sets, moves or (with {@link #NEVER}) removes the pending time of a source. */
    void set(final int source, final long atNs) {
        final int at = position[source];
        if (atNs == NEVER) {
            if (at >= 0) {
                remove(at);
            }
            return;
        }
        final long before = timeNs[source];
        timeNs[source] = atNs;
        if (at < 0) {
            position[source] = size;
            heap[size] = source;
            size++;
            up(size - 1);
        } else if (atNs < before) {
            up(at);
        } else if (atNs > before) {
            down(at);
        }
    }

    /** Whether a source has a pending time. */
    boolean isPending(final int source) {
        return position[source] >= 0;
    }

    /** Time of the first event, or {@link #NEVER}. */
    long firstNs() {
        return size == 0 ? NEVER : timeNs[heap[0]];
    }

    /** Source of the first event; the queue must not be empty. */
    int first() {
        return heap[0];
    }

    /** Takes the first event out and returns its source; the queue must not be empty. */
    int poll() {
        final int source = heap[0];
        remove(0);
        return source;
    }

    private void remove(final int at) {
        final int source = heap[at];
        size--;
        final int last = heap[size];
        timeNs[source] = NEVER;
        position[source] = -1;
        if (at != size) {
            heap[at] = last;
            position[last] = at;
            up(at);
            down(position[last]);
        }
    }

    private boolean before(final int a, final int b) {
        return timeNs[a] != timeNs[b] ? timeNs[a] < timeNs[b] : a < b;
    }

    private void up(final int from) {
        int at = from;
        final int source = heap[at];
        while (at > 0) {
            final int parent = (at - 1) >>> 1;
            if (!before(source, heap[parent])) {
                break;
            }
            heap[at] = heap[parent];
            position[heap[at]] = at;
            at = parent;
        }
        heap[at] = source;
        position[source] = at;
    }

    private void down(final int from) {
        int at = from;
        final int source = heap[at];
        while (true) {
            int child = 2 * at + 1;
            if (child >= size) {
                break;
            }
            if (child + 1 < size && before(heap[child + 1], heap[child])) {
                child++;
            }
            if (!before(heap[child], source)) {
                break;
            }
            heap[at] = heap[child];
            position[heap[at]] = at;
            at = child;
        }
        heap[at] = source;
        position[source] = at;
    }
}
