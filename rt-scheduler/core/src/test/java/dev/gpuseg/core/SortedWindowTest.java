/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class SortedWindowTest {
    private static final int CAPACITY = 10;

    @Test
    void shouldAgreeWithASort() {
        final SortedWindow window = new SortedWindow(CAPACITY);
        final Deque<Long> newest = new ArrayDeque<>();
        final SplittableRandom random = new SplittableRandom(3);
        assertEquals(0, window.quantile(500));
        for (int i = 0; i < 1000; i++) {
            final long value = random.nextLong(20) - 10;
            window.add(value);
            newest.add(value);
            if (newest.size() > CAPACITY) {
                newest.remove();
            }
            final long[] sorted = newest.stream().mapToLong(v -> v).sorted().toArray();
            assertEquals(sorted.length, window.size());
            assertEquals(sorted[0], window.quantile(0));
            assertEquals(sorted[sorted.length / 2], window.quantile(500));
            assertEquals(sorted[sorted.length - 1], window.quantile(SortedWindow.PERMILLE));
            assertEquals(newest.stream().mapToLong(v -> v).sum() / sorted.length, window.mean());
            assertEquals(newest.stream().mapToLong(v -> Math.max(0, v - 2)).sum() / sorted.length,
                window.meanAbove(2));
            final long[] above = newest.stream().mapToLong(v -> v).filter(v -> v > 2).sorted().toArray();
            assertEquals(above.length == 0 ? 0 : above[above.length / 2], window.middleAbove(2));
        }
        window.clear();
        assertEquals(0, window.size());
        assertEquals(0, window.mean());
    }
}
