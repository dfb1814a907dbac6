/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;

/** The budget against times that an adversary chooses, and what becomes of contexts that fit and that do not. */
class CoRunBudgetProperties {
    private static final int CONTEXTS = 8;
    private static final long MS = 1_000_000;

    /** One task, its budget, and what a test knows of its jobs. */
    private static final class Task {
        final int percent;
        final CoRunBudget budget;
        final int[] beside = new int[CONTEXTS];
        final int[] ran = new int[CONTEXTS + 1];
        int count;
        int jobs;
        int coRun;

        Task(final int percent) {
            this.percent = percent;
            budget = new CoRunBudget(percent, CONTEXTS);
        }

        /** Begins a job while these contexts want to run. */
        void begin(final int... contexts) {
            budget.begin();
            count = 0;
            for (final int c : contexts) {
                if (budget.mayRunBeside(c)) {
                    beside[count++] = c;
                    ran[c]++;
                }
            }
        }

        void end(final long tookNs) {
            budget.observed(tookNs, beside, count);
            jobs++;
            coRun += count > 0 ? 1 : 0;
        }

        boolean has(final int context) {
            for (int i = 0; i < count; i++) {
                if (beside[i] == context) {
                    return true;
                }
            }
            return false;
        }
    }

    @Example
    void shouldRefuseABudgetOutOfRange() {
        assertThrows(IllegalArgumentException.class, () -> new CoRunBudget(0, 1));
        final String refusal =
            assertThrows(IllegalArgumentException.class, () -> new CoRunBudget(101, 1)).getMessage();
        assertTrue(refusal.contains("101%") && refusal.contains("1..100%"), refusal);
    }

    @Example
    void shouldLetNothingRunBesideUntilItKnowsTheTimeAlone() {
        final Task task = new Task(10);
        for (int i = 0; i < CoRunBudget.ALONE_FIRST; i++) {
            task.begin(1, 2);
            assertEquals(0, task.count, "job " + i);
            task.end(MS);
        }
        assertEquals(MS, task.budget.aloneNs());
    }

    @Example
    void shouldTryThoseThatGoFirstBeforeTheOthers() {
        final Task task = new Task(10);
        task.budget.goesFirst(7, true);
        task.budget.goesFirst(5, true);
        int others = 0;
        while (!task.budget.hasPassed(5) || !task.budget.hasPassed(7)) {
            task.begin(2, 5, 7);
            others += task.has(2) ? 1 : 0;
            task.end(MS);
            assertTrue(task.jobs < 200, "those that fit pass");
        }
        assertEquals(0, others);
        while (!task.budget.hasPassed(2)) {
            task.begin(2, 5, 7);
            task.end(MS);
            assertTrue(task.jobs < 400, "then the others have their turn");
        }
    }

    @Example
    void shouldTryOthersWhileThoseThatGoFirstAreHeld() {
        final Task task = new Task(10);
        task.budget.goesFirst(7, true);
        while (!task.budget.hasPassed(2)) {
            task.begin(2, 7);
            task.end(task.has(7) ? 3 * MS : MS);
            assertTrue(task.jobs < 400, "an unfit one does not keep the others from their trials");
        }
        assertFalse(task.budget.hasPassed(7));
    }

    // Whatever the jobs take, and whoever wants to run: the sum of what they took longer stays below what the budget
    // allows of all jobs, but for one of them.
    @Property(tries = 400)
    void shouldKeepTheBudgetWhateverIsMeasured(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final Task task = new Task(random.nextInt(CoRunBudget.PERCENT_MIN, CoRunBudget.PERCENT_MAX + 1));
        final long usualNs = random.nextLong(1, 50 * MS);
        final int spite = random.nextInt(4);
        double allowed = 0;
        double spent = 0;
        double largest = 0;
        for (int i = 0; i < 2_000; i++) {
            final int[] wanting = random.ints(random.nextInt(0, CONTEXTS), 0, CONTEXTS + 1).distinct().toArray();
            task.begin(wanting);
            final long noiseNs = random.nextLong(0, usualNs / 5 + 1);
            // Fair while it is watched alone, slow as soon as something has passed; or slow at random; or never.
            final boolean isSlow = switch (spite) {
                case 0 -> task.count > 0;
                case 1 -> task.count > 1;
                case 2 -> random.nextInt(10) == 0;
                default -> false;
            };
            final long tookNs = usualNs + noiseNs + (isSlow ? random.nextLong(0, 20 * usualNs) : 0);
            final int beside = task.count;
            if (beside > 0) {
                assertTrue(task.budget.creditNs() >= 0, "something runs beside a job although the budget is exceeded");
            }
            task.end(tookNs);
            final double aloneNs = task.budget.aloneNs();
            allowed += aloneNs * task.percent / 100;
            if (beside > 0) {
                spent += tookNs - aloneNs;
                largest = Math.max(largest, tookNs - aloneNs);
            }
            assertTrue(spent <= allowed + largest + task.jobs, "after " + task.jobs + " jobs: " + spent + " ns of "
                + allowed + " ns, largest " + largest);
        }
    }

    // A context beside which every job is too long gets two trials, and ever fewer afterwards.
    @Property(tries = 100)
    void shouldHoldAnUnfitContextAfterTwoTrials(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final Task task = new Task(10);
        final int unfit = random.nextInt(0, CONTEXTS + 1);
        final int jobs = 5_000;
        for (int i = 0; i < jobs; i++) {
            task.begin(0, 1, 2, 3, 4, 5, 6, 7, 8);
            assertFalse(task.has(unfit) && task.count > 1, "what is on trial runs by itself");
            task.end(task.has(unfit) ? MS + random.nextLong(MS / 4, MS) : MS + random.nextLong(0, MS / 20));
        }
        assertFalse(task.budget.hasPassed(unfit));
        // Two strikes, then held for 64 jobs, 128, 256 ...
        final int most = CoRunBudget.STRIKES + 32 - Integer.numberOfLeadingZeros(jobs / CoRunBudget.HOLD_FIRST);
        assertTrue(task.ran[unfit] <= most, task.ran[unfit] + " of " + jobs + " jobs, at most " + most);
        assertTrue(task.budget.heldCount() >= 1);
    }

    // Contexts that cost little are not starved by one that does not fit.
    @Property(tries = 50)
    void shouldLetFitContextsRunBesideMostJobs(@ForAll final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final Task task = new Task(10);
        final int unfit = random.nextInt(0, CONTEXTS + 1);
        for (int i = 0; i < 4_000; i++) {
            task.begin(0, 1, 2, 3, 4, 5, 6, 7, 8);
            task.end(task.has(unfit) ? 2 * MS : MS + random.nextLong(0, MS / 20));
        }
        for (int c = 0; c <= CONTEXTS; c++) {
            if (c != unfit) {
                assertTrue(task.budget.hasPassed(c), "context " + c);
                assertTrue(task.ran[c] > 3_000, "context " + c + " ran beside " + task.ran[c] + " of 4000 jobs");
            }
        }
    }

    // Each fits by itself, all together do not.
    @Example
    void shouldPutAllOnTrialAgainThatTogetherAreTooMuch() {
        final Task task = new Task(10);
        int tooMany = 0;
        for (int i = 0; i < 4_000; i++) {
            task.begin(1, 2, 3);
            tooMany += task.count > 1 ? 1 : 0;
            task.end(task.count > 1 ? 3 * MS : MS);
        }
        // 3 ms instead of 1 ms eats twenty payments: one such job in twenty.
        assertTrue(tooMany > 0 && tooMany <= 4_000 / 20 + CoRunBudget.CREDIT_JOBS, tooMany + " jobs");
    }

    @Example
    void shouldFollowATaskWhoseTimeAloneChanges() {
        final Task task = new Task(10);
        for (int i = 0; i < 2_000; i++) {
            final long usualNs = i < 1_000 ? MS : 5 * MS;
            task.begin(1);
            task.end(usualNs);
        }
        assertEquals(5 * MS, task.budget.aloneNs());
        final int before = task.ran[1];
        for (int i = 0; i < 1_000; i++) {
            task.begin(1);
            task.end(5 * MS);
        }
        assertTrue(task.ran[1] - before > 800, "the change itself costs budget, which is paid back");
    }

    @Example
    void shouldNotBeMovedByOneLongJobAlone() {
        final Task task = new Task(10);
        for (int i = 0; i < 100; i++) {
            task.begin();
            task.end(i == 50 ? 1_000 * MS : MS);
        }
        assertEquals(MS, task.budget.aloneNs());
        assertTrue(task.budget.creditNs() <= CoRunBudget.CREDIT_JOBS * MS / 10);
    }

    @Example
    void shouldTreatANewContextWithAnOldNumberAsNew() {
        final Task task = new Task(10);
        for (int i = 0; i < 400; i++) {
            task.begin(1);
            task.end(MS);
        }
        assertTrue(task.budget.hasPassed(1));
        task.budget.forget(1);
        assertFalse(task.budget.hasPassed(1));
        for (int i = 0; i < 400; i++) {
            task.begin(1);
            task.end(MS);
        }
        assertTrue(task.budget.hasPassed(1));
    }

    @Property(tries = 50)
    void shouldDecideTheSameForTheSameJobs(@ForAll final long seed) {
        final Task one = new Task(20);
        final Task other = new Task(20);
        final SplittableRandom random = new SplittableRandom(seed);
        for (int i = 0; i < 500; i++) {
            final int[] wanting = random.ints(3, 0, CONTEXTS + 1).distinct().toArray();
            one.begin(wanting);
            other.begin(wanting);
            assertEquals(one.count, other.count);
            final long tookNs = random.nextLong(MS, 2 * MS);
            one.end(tookNs);
            other.end(tookNs);
            assertEquals(one.budget.creditNs(), other.budget.creditNs());
        }
    }
}
