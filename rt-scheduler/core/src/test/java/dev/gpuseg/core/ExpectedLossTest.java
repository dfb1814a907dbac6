/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class ExpectedLossTest {
    private final ExpectedLoss loss = new ExpectedLoss();

    private void served(final int begins, final long expectedNs, final long spentNs) {
        for (int i = 0; i < begins; i++) {
            loss.expect(expectedNs);
            loss.serve();
            loss.spend(spentNs);
            loss.settle();
        }
    }

    @Test
    void shouldExpectWhatTheNewestBeginsDidCost() {
        served(7, 100_000, 300_000);
        assertEquals(100_000, loss.scaled(100_000), "too few begins");
        served(1, 100_000, 300_000);
        assertEquals(300_000, loss.scaled(100_000));
        served(500, 100_000, 80_000);
        assertEquals(80_000, loss.scaled(100_000), 1_000);
        served(500, 100_000, 1);
        assertEquals(50_000, loss.scaled(100_000), "half of it at least");
        served(500, 100_000, 10_000_000);
        assertEquals(400_000, loss.scaled(100_000), "four times at most");
        loss.reset();
        assertEquals(100_000, loss.scaled(100_000));
    }

    @Test
    void shouldMeasureOnlyBeginsThatAreServed() {
        served(20, 100, 300);
        for (int i = 0; i < 100; i++) {
            loss.expect(100);
            loss.settle();
        }
        assertEquals(300, loss.scaled(100));
    }

    @Test
    void shouldForgetSlowlyWhatItRefuses() {
        served(20, 100_000, 300_000);
        loss.refuse();
        assertTrue(loss.scaled(1_000) > 2_900, "" + loss.scaled(1_000));
        for (int i = 0; i < 3_000; i++) {
            loss.refuse();
        }
        assertEquals(1_000, loss.scaled(1_000));
    }
}
