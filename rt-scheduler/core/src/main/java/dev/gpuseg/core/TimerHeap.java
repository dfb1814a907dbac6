/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * The next instant at which something is due, for each task at most one: a binary heap that knows where each task
 * stands, so that a change of a task's time costs O(log n) and allocates nothing. Equal times are taken in order of
 * task id, so that two runs of the same events report in the same order.
 */
final class TimerHeap {
    private static final int ABSENT = -1;

    private final int[] heap;
    private final int[] position;
    private final long[] dueNs;
    private int size;

    TimerHeap(final int maxTasks) {
        heap = new int[maxTasks + 1];
        position = new int[maxTasks + 1];
        dueNs = new long[maxTasks + 1];
        java.util.Arrays.fill(position, ABSENT);
    }

    long nextNs() {
        return size == 0 ? Time.NEVER : dueNs[heap[0]];
    }

    /** The task whose time is next; only while {@link #nextNs()} is not {@link Time#NEVER}. */
    int next() {
        return heap[0];
    }

    /** Sets the time of a task; {@link Time#NEVER} takes it out. */
    void set(final int task, final long timeNs) {
        int at = position[task];
        if (timeNs == Time.NEVER) {
            if (at != ABSENT) {
                remove(task, at);
            }
            return;
        }
        dueNs[task] = timeNs;
        if (at == ABSENT) {
            at = size++;
            place(task, at);
        }
        siftDown(task, siftUp(task, at));
    }

    private void remove(final int task, final int at) {
        position[task] = ABSENT;
        final int last = heap[--size];
        if (last != task) {
            place(last, at);
            siftDown(last, siftUp(last, at));
        }
    }

    private int siftUp(final int task, final int from) {
        int at = from;
        while (at > 0) {
            final int parent = (at - 1) >>> 1;
            if (!isBefore(task, heap[parent])) {
                break;
            }
            place(heap[parent], at);
            at = parent;
        }
        place(task, at);
        return at;
    }

    private void siftDown(final int task, final int from) {
        int at = from;
        while (true) {
            int child = 2 * at + 1;
            if (child >= size) {
                break;
            }
            if (child + 1 < size && isBefore(heap[child + 1], heap[child])) {
                child++;
            }
            if (!isBefore(heap[child], task)) {
                break;
            }
            place(heap[child], at);
            at = child;
        }
        place(task, at);
    }

    private void place(final int task, final int at) {
        heap[at] = task;
        position[task] = at;
    }

    private boolean isBefore(final int a, final int b) {
        return dueNs[a] != dueNs[b] ? dueNs[a] < dueNs[b] : a < b;
    }
}
