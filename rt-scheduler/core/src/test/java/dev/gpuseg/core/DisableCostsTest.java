/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class DisableCostsTest {
    private static final long STATED_NS = 700_000;
    private static final long PER_CONTEXT_NS = 20_000;

    private final DisableCosts costs = new DisableCosts();

    DisableCostsTest() {
        costs.state(STATED_NS, PER_CONTEXT_NS);
    }

    private void measure(final int contexts, final long fromNs, final int count) {
        for (int i = 0; i < count; i++) {
            costs.add(contexts, fromNs + i);
        }
    }

    @Test
    void shouldTakeWhatTheMechanismStatesUntilEnoughWasMeasured() {
        measure(3, 5_000, DisableCosts.SAMPLES_MIN - 1);
        assertEquals(STATED_NS + 2 * PER_CONTEXT_NS + DisableCosts.MARGIN_NS, costs.quantileNs(3, 900));
        measure(3, 5_000, 1);
        assertEquals(5_000, costs.quantileNs(3, 0));
    }

    @Test
    void shouldTellNumbersOfContextsApart() {
        measure(1, 1_000, 20);
        measure(8, 9_000, 20);
        assertEquals(1_000, costs.quantileNs(1, 0));
        assertEquals(9_000, costs.quantileNs(7, 0), "5 to 8 are one class");
        assertEquals(1_000 + 2 * PER_CONTEXT_NS, costs.quantileNs(3, 0), "a smaller class and what is stated");
    }

    @Test
    void shouldTakeALargerClassWhereNoSmallerOneWasMeasured() {
        measure(8, 9_000, 20);
        assertEquals(9_000, costs.quantileNs(1, 0));
    }

    @Test
    void shouldLeaveOutWhatWaitedForSomethingElse() {
        measure(1, 1_000, 20);
        costs.add(1, DisableCosts.MAX_NS + 1);
        costs.add(0, 1);
        assertEquals(1_019, costs.quantileNs(1, SortedWindow.PERMILLE));
        assertEquals(1_000, costs.quantileNs(1, 0));
    }

    /** It would have been longer: the middle one of the longer ones, or an eighth more if there is none. */
    @Test
    void shouldCountAMeasurementThatWasEndedAsALongerOne() {
        costs.addAtLeast(1, 1_000);
        assertEquals(STATED_NS + DisableCosts.MARGIN_NS, costs.quantileNs(1, 0), "too few to say how long");
        measure(1, 1_000, 9);
        costs.addAtLeast(1, 1_003);
        assertEquals((9 * 1_004 + 1_006) / 10, costs.meanNs(1));
        costs.addAtLeast(1, 8_000);
        assertEquals(9_000, costs.quantileNs(1, SortedWindow.PERMILLE));
    }

    @Test
    void shouldBeFullWithTheMeasurementsOfOneNumberOfContexts() {
        measure(1, 1_000, 63);
        measure(8, 1_000, 63);
        assertFalse(costs.isFull());
        measure(8, 1_000, 1);
        assertTrue(costs.isFull());
        costs.clear();
        assertFalse(costs.isFull());
        assertEquals(STATED_NS + DisableCosts.MARGIN_NS, costs.quantileNs(1, 0));
    }
}
