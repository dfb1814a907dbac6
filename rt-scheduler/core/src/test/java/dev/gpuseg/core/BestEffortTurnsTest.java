/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Random;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class BestEffortTurnsTest {
    private static final long MS = 1_000_000;
    private static final long LEAST = BestEffortTurns.LEAST_NS;
    private static final long TURN = BestEffortTurns.TURN_NS;

    private final TreeSet<Integer> resting = new TreeSet<>();
    private final BestEffortTurns turns = new BestEffortTurns(10, (c, rests) -> {
        if (rests) {
            resting.add(c);
        } else {
            resting.remove(c);
        }
    });

    private void join(final int... contexts) {
        for (final int c : contexts) {
            turns.takesPart(c, true);
        }
    }

    @Test
    void shouldLetTheOnlyOneHaveItAlways() {
        join(3);
        turns.decide(false, 0);
        assertEquals(3, turns.holder());
        assertTrue(resting.isEmpty());
        assertEquals(Time.NEVER, turns.nextNs());
    }

    @Test
    void shouldGiveItToOneAfterTheOther() {
        join(1, 2, 3);
        turns.decide(false, 0);
        assertEquals(1, turns.holder());
        assertEquals("[2, 3]", resting.toString());
        assertEquals(TURN, turns.nextNs());
        turns.decide(false, TURN - 1);
        assertEquals(1, turns.holder(), "nothing changes before the end of the turn");
        turns.decide(false, TURN);
        assertEquals("[1, 3]", resting.toString());
        turns.decide(false, 2 * TURN);
        assertEquals("[1, 2]", resting.toString());
        turns.decide(false, 3 * TURN);
        assertEquals("[2, 3]", resting.toString());
    }

    @Test
    void shouldEndATurnWhenBestEffortGetsTheGpuBackIfItLastedLongEnough() {
        join(1, 2);
        turns.decide(false, 0);
        turns.decide(true, LEAST - 1);
        assertEquals(Time.NEVER, turns.nextNs(), "no turn ends while best effort does not have the GPU");
        turns.decide(false, LEAST + 5 * MS);
        assertEquals(1, turns.holder(), "too short for a change");
        assertEquals(LEAST + 5 * MS + TURN - LEAST + 1, turns.nextNs(), "what was taken does not count");
        turns.decide(true, LEAST + 6 * MS);
        assertEquals(1, turns.holder(), "not when it is taken: the change would be a call at a begin");
        turns.decide(false, LEAST + 11 * MS);
        assertEquals(2, turns.holder());
    }

    @Test
    void shouldCountATurnFromItsEnable() {
        join(1, 2);
        turns.decide(false, 0);
        turns.decide(false, TURN);
        turns.applied(2, true, TURN + 3 * MS);
        turns.applied(1, false, TURN + 4 * MS);
        assertEquals(2 * TURN + 3 * MS, turns.nextNs(), "a late call shortens nobody's turn");
        turns.decide(false, 2 * TURN + 3 * MS - 1);
        assertEquals(2, turns.holder());
        turns.decide(false, 2 * TURN + 3 * MS);
        assertEquals(1, turns.holder());
    }

    @Test
    void shouldChangeSeldomWhileChangesAreLate() {
        join(1, 2);
        turns.decide(false, 0);
        turns.applied(1, true, MS);
        turns.decide(false, MS + TURN);
        assertEquals(2, turns.holder());
        final long on = MS + TURN + 10 * MS;
        turns.applied(2, true, on);
        assertEquals(on + 400 * MS, turns.nextNs());
        turns.decide(true, on + LEAST);
        turns.decide(false, on + LEAST);
        assertEquals(2, turns.holder(), "no segment ends it either");
        turns.decide(false, on + 400 * MS - 1);
        assertEquals(2, turns.holder());
        turns.decide(false, on + 400 * MS);
        assertEquals(1, turns.holder());
        turns.applied(1, true, on + 400 * MS + BestEffortTurns.LATE_NS - 1);
        assertEquals(on + 400 * MS + BestEffortTurns.LATE_NS - 1 + TURN, turns.nextNs(), "calls are fast again");
        turns.decide(false, turns.nextNs());
        turns.applied(2, true, on + 2_000 * MS);
        assertEquals(on + 2_000 * MS + BestEffortTurns.MOST_NS, turns.nextNs(), "no longer than that");
    }

    @Test
    void shouldCountWhatOneHadAfterItsTurnForIt() {
        join(1, 2, 3);
        turns.decide(false, 0);
        turns.decide(false, TURN);
        turns.applied(2, true, TURN);
        turns.applied(1, false, TURN + TURN);   // its disable took so long
        turns.decide(false, 2 * TURN);
        assertEquals(3, turns.holder());
        turns.decide(false, 3 * TURN);
        assertEquals(2, turns.holder(), "1 had two turns");
    }

    @Test
    void shouldForgetWhoLeavesAndLetWhoComesWaitNoLongerThanTheOthers() {
        join(1, 2);
        turns.decide(false, 0);
        assertTrue(turns.takesPart(1, false));
        turns.decide(false, MS);
        assertEquals(2, turns.holder());
        assertTrue(resting.isEmpty(), "one that does not take part never rests");
        join(4);
        assertEquals("[4]", resting.toString(), "it waits for its turn");
        turns.decide(false, TURN + MS);
        assertEquals(4, turns.holder());
        turns.takesPart(4, false);
        turns.takesPart(2, false);
        turns.decide(false, TURN + 2 * MS);
        assertEquals(-1, turns.holder());
        assertTrue(resting.isEmpty());
    }

    @Test
    void shouldLetAllButOneRestAndGiveAllAlikeWhateverHappens() {
        final long seed = System.nanoTime();
        final Random random = new Random(seed);
        join(1, 2, 3, 4);
        final long[] had = new long[5];
        long now = 0;
        boolean taken = false;
        turns.decide(false, 0);
        for (int i = 0; i < 20_000; i++) {
            final long stepNs = random.nextInt(20) * MS;
            had[turns.holder()] += taken ? 0 : stepNs;
            now += stepNs;
            taken = random.nextBoolean();
            turns.decide(taken, now);
            assertEquals(3, resting.size(), "seed " + seed);
            assertFalse(resting.contains(turns.holder()), "seed " + seed);
        }
        for (int c = 2; c <= 4; c++) {
            assertEquals(1.0, had[c] / (double) had[1], 0.02, "seed " + seed);
        }
    }
}
