/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

class CallChoiceTest {
    private static final long WITH = 5_450;
    private final CallChoice choice = new CallChoice();

    /** Segments until one way is chosen, or one more trial is over. */
    private void tryBoth(final long withoutNs) {
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            final long patienceNs = choice.patienceNs();
            choice.ended(patienceNs, patienceNs == 0 ? WITH : withoutNs);
        }
    }

    @Test
    void shouldBeginWithTheCallAndTryBothInTurn() {
        assertEquals(0, choice.patienceNs());
        choice.ended(0, WITH);
        assertEquals(2 * WITH, choice.patienceNs());
        choice.ended(2 * WITH, 5_230);
        assertEquals(0, choice.patienceNs());
        assertFalse(choice.isChosen());
    }

    @Test
    void shouldGoWithoutWhereThatIsShorter() {
        tryBoth(5_230);
        assertTrue(choice.isChosen());
        assertEquals(2 * WITH, choice.patienceNs());
    }

    @Test
    void shouldCallWhereGapsLetOthersIn() {
        tryBoth(13_000);
        assertTrue(choice.isChosen());
        assertEquals(0, choice.patienceNs());
    }

    @Test
    void shouldTakeTheMedianNotTheWorst() {
        for (int i = 0; i < 2 * CallChoice.TRIALS; i++) {
            final long patienceNs = choice.patienceNs();
            choice.ended(patienceNs, patienceNs == 0 ? WITH : i == 1 ? 60_000 : 5_230);
        }
        assertEquals(120_000, choice.patienceNs(), "twice the longest");
    }

    @Test
    void shouldTryAnewWhenTheCallCameAfterAllManyTimes() {
        tryBoth(5_230);
        for (int i = 0; i < CallChoice.TRIALS - 1; i++) {
            choice.ended(2 * WITH, 2 * WITH + 1);
        }
        assertTrue(choice.isChosen());
        choice.ended(2 * WITH, 2 * WITH + 1);
        assertFalse(choice.isChosen());
        tryBoth(13_000);
        assertEquals(0, choice.patienceNs(), "the task changed");
    }

    @Test
    void shouldNotStayWithAChoiceOfDisturbedTrials() {
        tryBoth(13_000);
        for (int i = 0; i < CallChoice.FIRST_PROBE; i++) {
            assertEquals(0, choice.patienceNs(), "segment " + i);
            choice.ended(0, WITH);
        }
        assertTrue(choice.patienceNs() > 0, "one goes the other way");
        choice.ended(choice.patienceNs(), 5_230);
        assertFalse(choice.isChosen());
        tryBoth(5_230);
        assertEquals(2 * WITH, choice.patienceNs());
    }

    @Test
    void shouldNoticeThatTheCallHasBecomeBetter() {
        tryBoth(5_230);
        for (int i = 0; i < CallChoice.FIRST_PROBE; i++) {
            choice.ended(choice.patienceNs(), 7_000);
        }
        assertEquals(0, choice.patienceNs());
        choice.ended(0, WITH);
        tryBoth(7_000);
        assertEquals(0, choice.patienceNs());
    }

    @Test
    void shouldTryTheOtherWayEverMoreRarely() {
        tryBoth(13_000);
        int probes = 0;
        for (int i = 0; i < 10_000; i++) {
            final boolean isProbe = choice.patienceNs() > 0;
            probes += isProbe ? 1 : 0;
            choice.ended(choice.patienceNs(), isProbe ? 13_000 : WITH);
            assertTrue(choice.isChosen());
        }
        assertEquals(8, probes, "after 32, 64, 128, ... 4096");
    }
}
