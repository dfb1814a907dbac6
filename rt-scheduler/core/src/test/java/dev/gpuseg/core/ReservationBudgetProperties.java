/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** Random payments of tasks of different rank, while best-effort work has the GPU now and then. */
class ReservationBudgetProperties {
    private static final int TASKS = 5;
    private static final int STEPS = 2_000;
    private static final int PPM = 50_000;
    private static final long MS = 1_000_000;

    /** One history; what concerns time and each task is drawn by itself, so that it is the same with other tasks. */
    private static final class Run {
        private final ReservationBudget budget = new ReservationBudget(PPM, TASKS);
        private final List<List<String>> answers = new ArrayList<>();
        private final long[] longestNs = new long[TASKS + 1];
        private long nowNs;
        private long lentNs;
        private long spentNs;

        /** Tasks after the last one of these, in order of rank, do other things. */
        Run(final long seed, final int same, final long otherSeed) {
            final SplittableRandom time = new SplittableRandom(seed);
            final SplittableRandom[] own = new SplittableRandom[TASKS + 1];
            for (int t = TASKS; t >= 1; t--) {
                own[t] = new SplittableRandom(t <= same ? seed + t : otherSeed + t);
                budget.add(t, Priority.MAX - t);   // task 1 has the highest rank, and is the last that comes
            }
            for (int t = 0; t <= TASKS; t++) {
                answers.add(new ArrayList<>());
            }
            boolean isLent = true;
            for (int step = 0; step < STEPS; step++) {
                final long sinceNs = time.nextLong(5 * MS);
                nowNs += sinceNs;
                lentNs += isLent ? sinceNs : 0;
                isLent = time.nextInt(3) > 0;
                budget.lend(isLent, nowNs, nowNs);
                for (int t = 1; t <= TASKS; t++) {
                    act(t, own[t]);
                }
            }
        }

        private void act(final int t, final SplittableRandom random) {
            final boolean isLeft = budget.isLeft(t, nowNs);
            answers.get(t).add(isLeft + " " + budget.leftPpm(t, nowNs));
            final boolean wants = random.nextInt(1 + t) == 0;
            final long ns = random.nextLong(MS);
            budget.claim(t, random.nextLong(PPM / 2), random.nextLong(100 * MS), nowNs);
            if (wants && isLeft) {
                budget.spend(t, ns, nowNs);
                spentNs += ns;
                longestNs[t] = Math.max(longestNs[t], ns);
            }
        }
    }

    @Property(tries = 200)
    void shouldAnswerATaskTheSameWhateverTheTasksAfterItDo(@ForAll final long seed) {
        for (int same = 1; same < TASKS; same++) {
            final Run one = new Run(seed, same, seed + 100);
            final Run other = new Run(seed, same, seed + 200);
            for (int t = 1; t <= same; t++) {
                assertEquals(one.answers.get(t), other.answers.get(t), "task " + t);
            }
        }
    }

    @Property(tries = 200)
    void shouldSpendNoMoreThanWasEarnedAndOnePaymentOfEachTask(@ForAll final long seed) {
        final Run run = new Run(seed, TASKS, seed);
        long mostNs = run.lentNs / Anticipator.PPM * PPM + PPM;
        for (final long ns : run.longestNs) {
            mostNs += ns;
        }
        assertTrue(run.spentNs <= mostNs, run.spentNs + " ns spent, at most " + mostNs);
        assertTrue(run.spentNs > run.lentNs / Anticipator.PPM * PPM / 2, "most of it is used: " + run.spentNs);
    }

    @Example
    void shouldKeepTheSavingsOfATaskThatPausesAndGiveTheRestToTheNext() {
        final ReservationBudget budget = new ReservationBudget(PPM, TASKS);
        budget.add(2, 50);
        budget.add(1, 60);
        budget.lend(true, 0, 0);
        assertFalse(budget.isLeft(2, 100 * MS), "all of it is for the first task");
        assertTrue(budget.isLeft(1, 100 * MS));
        assertTrue(budget.isLeft(2, 300 * MS), "the first one has all that it may save");
        long nowNs = 300 * MS;
        for (int i = 0; i < 100; i++) {
            nowNs += 10 * MS;
            if (budget.isLeft(2, nowNs)) {
                budget.spend(2, MS, nowNs);
            }
        }
        budget.spend(1, 9 * MS, nowNs);
        assertTrue(budget.isLeft(1, nowNs), "5 % of 200 ms were there for it");
    }

    @Example
    void shouldNotServeATaskThatSpentAllBeforeHalfOfItIsThereAgain() {
        final ReservationBudget budget = new ReservationBudget(PPM, TASKS);
        budget.add(1, 50);
        budget.lend(true, 0, 0);
        budget.isLeft(1, 200 * MS);
        budget.spend(1, 10 * MS, 200 * MS);
        assertFalse(budget.isLeft(1, 290 * MS));
        assertTrue(budget.isLeft(1, 300 * MS));
    }

    @Example
    void shouldLeaveTheDebtOfATaskThatLeavesToTheOthers() {
        final ReservationBudget budget = new ReservationBudget(PPM, TASKS);
        budget.add(1, 50);
        budget.lend(true, 0, 0);
        budget.spend(1, 5 * MS, 0);
        budget.remove(1);
        budget.add(1, 50);
        assertFalse(budget.isLeft(1, 90 * MS));
        assertTrue(budget.isLeft(1, 110 * MS));
    }

    @Example
    void shouldDropTheClaimOfATaskThatIsSilentForLong() {
        final ReservationBudget budget = new ReservationBudget(PPM, TASKS);
        budget.add(1, 60);
        budget.add(2, 50);
        budget.lend(true, 0, 0);
        budget.claim(1, 30_000, 100 * MS, 0);
        assertEquals(PPM - 30_000, budget.leftPpm(2, 2_100 * MS));
        assertEquals(PPM, budget.leftPpm(1, 2_100 * MS), "lower claims are nothing to it");
        assertEquals(PPM, budget.leftPpm(2, 2_300 * MS));
    }
}
