/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class PriorityTest {
    @ParameterizedTest
    @ValueSource(ints = {-1, 100, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void shouldRefuseWhatIsNotOnTheScale(final int value) {
        assertFalse(Priority.isValid(value));
        final IllegalArgumentException e =
            assertThrows(IllegalArgumentException.class, () -> Priority.requireValid(value, "task 7"));
        assertTrue(e.getMessage().startsWith("task 7: priority is " + value), e.getMessage());
        assertThrows(IllegalArgumentException.class, () -> Priority.fromLinuxRtPriority(value));
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 100, -3})
    void shouldRefuseARankOutOfRange(final int rank) {
        assertThrows(IllegalArgumentException.class, () -> Priority.fromRank(rank));
        assertThrows(IllegalArgumentException.class, () -> Priority.toRank(rank));
    }

    @ParameterizedTest
    @ValueSource(ints = {-21, 20})
    void shouldRefuseANiceValueOutOfRange(final int nice) {
        assertThrows(IllegalArgumentException.class, () -> Priority.fromNice(nice));
    }

    @ParameterizedTest
    @ValueSource(ints = {-102, -1, 40})
    void shouldRefuseAStatFieldThatNoThreadHas(final int value) {
        assertThrows(IllegalArgumentException.class, () -> Priority.fromProcStat(value));
    }

    @Test
    void shouldPutNinetyNineFirstAndBestEffortLast() {
        assertTrue(Priority.isHigherThan(99, 98));
        assertTrue(Priority.isHigherThan(1, 0));
        assertTrue(Priority.isHigherThan(0, Priority.BELOW_ALL));
        assertFalse(Priority.isHigherThan(50, 50));
        assertFalse(Priority.isHigherThan(1, 2));
        assertTrue(Priority.compareHigherFirst(2, 1) < 0);
        assertTrue(Priority.compareHigherFirst(1, 2) > 0);
        assertEquals(0, Priority.compareHigherFirst(7, 7));
        assertTrue(Priority.isRealTime(1));
        assertFalse(Priority.isRealTime(0));
    }

    @Test
    void shouldTurnTheScaleOfTheLiteratureRound() {
        assertEquals(99, Priority.fromRank(1));
        assertEquals(1, Priority.fromRank(99));
        for (int p = Priority.MIN; p <= Priority.MAX; p++) {
            assertEquals(p, Priority.fromRank(Priority.toRank(p)));
        }
    }

    @ParameterizedTest
    @CsvSource({"-2,1", "-51,50", "-100,99", "-101,99", "0,0", "20,0", "39,0"})
    void shouldReadTheStatFieldOfProc(final int value, final int priority) {
        assertEquals(priority, Priority.fromProcStat(value));
    }

    @Test
    void shouldTakeEveryNiceValueAsBestEffort() {
        assertEquals(Priority.BEST_EFFORT, Priority.fromNice(-20));
        assertEquals(Priority.BEST_EFFORT, Priority.fromNice(19));
        assertEquals(42, Priority.fromLinuxRtPriority(42));
    }
}
