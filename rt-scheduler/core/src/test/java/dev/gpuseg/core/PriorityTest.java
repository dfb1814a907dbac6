/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PriorityTest {
    @ParameterizedTest
    @ValueSource(ints = {-1, 100, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void shouldRefuseWhatIsNotOnTheScale(final int value) {
        assertFalse(Priority.isValid(value));
        final IllegalArgumentException e =
            assertThrows(IllegalArgumentException.class, () -> Priority.requireValid(value, "task 7"));
        assertTrue(e.getMessage().startsWith("task 7: priority is " + value), e.getMessage());
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
}
