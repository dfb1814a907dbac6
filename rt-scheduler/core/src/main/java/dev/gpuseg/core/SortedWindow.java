/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** The newest values of a stream, in order of size: quantiles without a sort. Allocates nothing after construction. */
final class SortedWindow {
    static final int PERMILLE = 1000;

    private final long[] newest;
    private final long[] sorted;
    private int at;
    private int size;
    private long sum;

    /** Keeps this many values. */
    SortedWindow(final int capacity) {
        newest = new long[capacity];
        sorted = new long[capacity];
    }

    void clear() {
        at = 0;
        size = 0;
        sum = 0;
    }

    int size() {
        return size;
    }

    /** The oldest value leaves a full window. */
    void add(final long value) {
        if (size == newest.length) {
            sum -= newest[at];
            replace(newest[at], value);
        } else {
            insert(value);
        }
        sum += value;
        newest[at] = value;
        at = at + 1 == newest.length ? 0 : at + 1;
    }

    private void insert(final long value) {
        int i = size++;
        while (i > 0 && sorted[i - 1] > value) {
            sorted[i] = sorted[i - 1];
            i--;
        }
        sorted[i] = value;
    }

    private void replace(final long old, final long value) {
        int i = 0;
        while (sorted[i] != old) {
            i++;
        }
        while (i + 1 < size && sorted[i + 1] < value) {
            sorted[i] = sorted[i + 1];
            i++;
        }
        while (i > 0 && sorted[i - 1] > value) {
            sorted[i] = sorted[i - 1];
            i--;
        }
        sorted[i] = value;
    }

    /** The value that so many of 1000 values do not exceed; 0 if there is none. */
    long quantile(final int permille) {
        return size == 0 ? 0 : sorted[Math.min(size - 1, (int) ((long) size * permille / PERMILLE))];
    }

    /** 0 if there is no value. */
    long mean() {
        return size == 0 ? 0 : sum / size;
    }

    /** The middle one of the values above a limit, 0 if there is none. */
    long middleAbove(final long limit) {
        int first = size;
        while (first > 0 && sorted[first - 1] > limit) {
            first--;
        }
        return first == size ? 0 : sorted[(first + size) / 2];
    }

    /** By how much the values exceed a limit, on average: values below it count as 0. */
    long meanAbove(final long limit) {
        long over = 0;
        for (int i = size - 1; i >= 0 && sorted[i] > limit; i--) {
            over += sorted[i] - limit;
        }
        return size == 0 ? 0 : over / size;
    }
}
