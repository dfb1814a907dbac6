/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class BestEffortFillTest {
    private static final long S = 1_000_000_000;
    private final BestEffortFill fill = new BestEffortFill();
    private long nowNs = 100 * S;

    /** Looks, one a second, until they are together or not; how many it took. */
    private int looksUntil(final boolean together, final int permille) {
        for (int looks = 1; looks <= 1000; looks++) {
            nowNs += S;
            final boolean news = fill.look(permille, nowNs);
            assertEquals(news, fill.isTogether() == together);
            if (news) {
                return looks;
            }
        }
        throw new AssertionError("never");
    }

    @Test
    void shouldGoTogetherAfterSomeLooksInARow() {
        assertFalse(fill.isTogether());
        assertFalse(fill.look(BestEffortFill.LITTLE - 1, nowNs));
        assertFalse(fill.look(BestEffortFill.LITTLE - 1, nowNs));
        assertFalse(fill.look(BestEffortFill.LITTLE, nowNs), "one that uses half of it begins the count anew");
        assertEquals(BestEffortFill.LOOKS, looksUntil(true, BestEffortFill.LITTLE - 1));
    }

    @Test
    void shouldStayTogetherWhileTheGpuIsNotFull() {
        looksUntil(true, 360);
        for (int i = 0; i < 100; i++) {
            nowNs += S;
            assertFalse(fill.look(BestEffortFill.FULL - 1, nowNs));
        }
        assertTrue(fill.isTogether());
        assertEquals(BestEffortFill.LOOKS, looksUntil(false, BestEffortFill.FULL));
    }

    @Test
    void shouldTryTurnsEverLessOftenWhereTheyLeaveItIdle() {
        looksUntil(true, 360);
        int expected = 10;
        for (int trial = 0; trial < 8; trial++) {
            assertEquals(Math.min(expected, 320) + BestEffortFill.LOOKS - 1, looksUntil(false, 1000), "trial " + trial);
            assertEquals(BestEffortFill.LOOKS, looksUntil(true, 360));
            expected *= 2;
        }
    }

    @Test
    void shouldBeginAnewWhereTurnsFilledItForLong() {
        looksUntil(true, 360);
        looksUntil(false, 1000);
        looksUntil(true, 360);
        looksUntil(false, 1000);
        for (int i = 0; i < 20; i++) {
            nowNs += S;
            assertFalse(fill.look(900, nowNs));
        }
        looksUntil(true, 360);
        assertEquals(10 + BestEffortFill.LOOKS - 1, looksUntil(false, 1000));
    }

    @Test
    void shouldTryTurnsAtOnceWhereOtherProgramsTakePart() {
        looksUntil(true, 360);
        looksUntil(false, 1000);
        looksUntil(true, 360);
        fill.changed();
        assertTrue(fill.isTogether());
        assertEquals(BestEffortFill.LOOKS, looksUntil(false, 1000));
    }
}
