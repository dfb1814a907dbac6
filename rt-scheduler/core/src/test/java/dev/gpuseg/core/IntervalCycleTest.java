/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

class IntervalCycleTest {
    private static final long MS = 1_000_000;
    private final IntervalCycle cycle = new IntervalCycle();

    private void play(final int times, final long... distances) {
        for (int i = 0; i < times; i++) {
            for (final long ns : distances) {
                cycle.add(ns);
            }
        }
    }

    @Test
    void shouldExpectTwoDistancesInTurn() {
        play(3, 8 * MS, 25 * MS);
        assertFalse(cycle.isKnown(), "six distances say little");
        play(2, 8 * MS, 25 * MS);
        assertTrue(cycle.isKnown());
        assertEquals(8 * MS, cycle.nextNs(0));
        assertEquals(33 * MS, cycle.nextNs(1), "the one after that");
        assertEquals(41 * MS, cycle.nextNs(2));
        assertEquals(33 * MS / 2, cycle.meanNs());
        cycle.add(8 * MS);
        assertEquals(25 * MS, cycle.nextNs(0));
    }

    @Test
    void shouldExpectThreeDistancesInTurn() {
        play(4, 2 * MS, 3 * MS, 15 * MS);
        assertEquals(2 * MS, cycle.nextNs(0));
        assertEquals(20 * MS, cycle.nextNs(2));
    }

    @Test
    void shouldKeepStepWhenABeginIsLeftOut() {
        play(6, 8 * MS, 25 * MS);
        assertTrue(cycle.add(33 * MS), "both at once");
        assertEquals(8 * MS, cycle.nextNs(0));
        cycle.add(8 * MS);
        assertTrue(cycle.add(33 * MS), "the other one");
        assertEquals(25 * MS, cycle.nextNs(0));
    }

    @Test
    void shouldFollowDistancesThatDriftAndForgetThoseThatChange() {
        long shortNs = 8 * MS;
        long longNs = 25 * MS;
        for (int i = 0; i < 100; i++) {
            cycle.add(shortNs);
            cycle.add(longNs);
            shortNs += 20_000;
            longNs -= 50_000;
        }
        assertTrue(cycle.isKnown());
        assertTrue(Math.abs(cycle.nextNs(0) - shortNs) <= 20_000, () -> "" + cycle.nextNs(0));
        play(1, 60 * MS, 120 * MS, 400 * MS);
        assertFalse(cycle.isKnown());
    }

    @Property(tries = 300)
    void shouldExpectWhatComesIfItScattersLittleAndNothingOfRandomDistances(@ForAll final long seed,
        @ForAll final boolean regular) {
        final SplittableRandom random = new SplittableRandom(seed);
        final IntervalCycle seen = new IntervalCycle();
        final long[] distances = {random.nextLong(MS, 20 * MS), random.nextLong(30 * MS, 60 * MS)};
        int known = 0;
        for (int i = 0; i < 200; i++) {
            final long ns = regular ? distances[i % 2] + random.nextLong(distances[i % 2] / 50 + 1)
                : random.nextLong(MS, 60 * MS);
            if (regular && i > 10) {
                final long expected = seen.nextNs(0);
                assertTrue(Math.abs(expected - ns) <= ns / 20, () -> expected + " of " + ns);
            }
            seen.add(ns);
            known += seen.isKnown() ? 1 : 0;
        }
        assertTrue(regular ? known > 185 : known < 60, "known after " + known + " of 200");
    }
}
