/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.TimePartitions;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Partitions, classes, budgets, weights and caps in simulated time, by the live scheduler core. */
class PolicySimulationTest {
    private static final long MS = 1_000_000;

    private static SimulationOptions under(final Scheduler scheduler) {
        return SimulationOptions.ofDurationNs(100 * MS).with(scheduler, CpuPolicy.FP);
    }

    private static TaskSet pair(final int firstPriority, final double firstMs, final int secondPriority,
        final double secondMs) {
        return Sets.set(WaitMode.SUSPEND, 2, 0,
            Sets.task("first", 1, firstPriority, 1000, Sets.gpu(0, firstMs)),
            Sets.task("second", 2, secondPriority, 1000, Sets.gpu(0, secondMs)));
    }

    @Test
    void shouldLetEachPartitionRunInItsWindowOnly() {
        final Simulator simulator = new Simulator(pair(50, 10, 60, 10));
        assertThrows(IllegalArgumentException.class, () -> simulator.execute(under(Scheduler.PARTITIONS)));
        simulator.setPolicy(new TimePartitions(FixedPriority.INSTANCE, 100 * MS, 0, MS, false,
            new TimePartitions.Window(1, 0, 6 * MS), new TimePartitions.Window(2, 20 * MS, 30 * MS)));
        simulator.setAttributes(0, 1, 0, OverrunAction.NOTIFY, 0, 0, 0);
        simulator.setAttributes(1, 2, 0, OverrunAction.NOTIFY, 0, 0, 0);
        simulator.execute(under(Scheduler.PARTITIONS));
        assertEquals(105 * MS, simulator.maxResponseNs(0), "5 ms in each of two windows");
        assertEquals(30 * MS, simulator.maxResponseNs(1), "its window opens at 20 ms");
    }

    @Test
    void shouldRunEqualPrioritiesTogetherUnderClasses() {
        final Simulator simulator = new Simulator(pair(50, 10, 50, 10));
        simulator.execute(under(Scheduler.FP));
        assertEquals(10 * MS, simulator.maxResponseNs(0));
        simulator.execute(under(Scheduler.CLASSES));
        assertTrue(simulator.maxResponseNs(0) >= 15 * MS, "it shares: " + simulator.maxResponseNs(0));
    }

    @Test
    void shouldDemoteASegmentThatOverruns() {
        final Simulator simulator = new Simulator(pair(60, 50, 50, 5));
        simulator.execute(under(Scheduler.FP));
        assertEquals(55 * MS, simulator.maxResponseNs(1));
        simulator.setAttributes(0, 0, 10 * MS, OverrunAction.DEMOTE, 0, 0, 0);
        simulator.execute(under(Scheduler.FP));
        assertEquals(15 * MS, simulator.maxResponseNs(1), 1, "the budget of the other, and its own 5 ms");
        assertEquals(55 * MS, simulator.maxResponseNs(0), 1);
    }

    @Test
    void shouldCapABestEffortTask() {
        final Simulator simulator = new Simulator(Sets.set(WaitMode.SUSPEND, 1, 0,
            Sets.task("capped", 1, 0, 1000, Sets.gpu(0, 100))));
        simulator.setAttributes(0, 0, 0, OverrunAction.NOTIFY, 0, 25 * MS, 100 * MS);
        simulator.execute(under(Scheduler.FP));
        assertEquals(325 * MS, simulator.maxResponseNs(0));
    }

    /** Weights and caps concern best effort alone: what is proved of real-time tasks holds whatever they are. */
    @Test
    void shouldNotExceedTheWindowBoundWhateverBestEffortSharesAre() {
        int compared = 0;
        for (int seed = 1; seed <= 400; seed++) {
            final TaskSet set = RandomSets.of(seed).withMode(WaitMode.SUSPEND);
            final AnalysisResult bound = Analyses.get("gcaps-window-suspend").analyse(set);
            final Simulator simulator = new Simulator(set);
            final SplittableRandom random = new SplittableRandom(seed);
            for (int i = 0; i < set.tasks().size(); i++) {
                if (set.tasks().get(i).bestEffort()) {
                    simulator.setAttributes(i, 0, 0, OverrunAction.NOTIFY, random.nextInt(1, 1000),
                        random.nextInt(2) * 5 * MS, 20 * MS);
                }
            }
            simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS).withSeed(seed));
            for (int i = 0; i < set.tasks().size(); i++) {
                final Long wcrtNs = set.tasks().get(i).bestEffort() ? null : bound.tasks().get(i).wcrtNs();
                if (bound.schedulable() && wcrtNs != null) {
                    final String what = "seed " + seed + ", task " + set.tasks().get(i).name();
                    assertTrue(simulator.maxResponseNs(i) <= wcrtNs, () -> what);
                    compared++;
                }
            }
        }
        assertTrue(compared > 200, "bounds compared: " + compared);
    }

    // A task that is known by its budget alone counts as a window of that length (admission), whatever it does.
    @Test
    void shouldNotExceedTheBoundThatTakesABudgetForTheWindow() {
        int compared = 0;
        int demoted = 0;
        for (int seed = 1; seed <= 400; seed++) {
            final SplittableRandom random = new SplittableRandom(seed);
            final double epsilonMs = random.nextInt(0, 4) / 4.0;
            final long budgetNs = random.nextInt(1, 6) * MS;
            final long usedNs = budgetNs + 1;   // it is used up 1 ns after it
            final int liar = random.nextInt(3);   // three are above the lowest
            final Task[] declared = new Task[4];
            final Task[] real = new Task[4];
            for (int i = 0; i < declared.length; i++) {
                final double periodMs = random.nextInt(40, 200);
                final Segment window = i == liar ? new Segment.Gpu(usedNs, usedNs, usedNs)
                    : Sets.gpu(random.nextInt(0, 3) / 2.0, random.nextInt(1, 8));
                declared[i] = Sets.task("t" + i, i + 1, 90 - i, periodMs, window);
                real[i] = i == liar
                    ? Sets.task("t" + i, i + 1, 90 - i, periodMs, Sets.gpu(0, 3.0 * budgetNs / MS)) : declared[i];
            }
            final AnalysisResult bound = Analyses.get("gcaps-window-suspend").analyse(
                Sets.set(WaitMode.SUSPEND, 4, epsilonMs, declared));
            final TaskSet set = Sets.set(WaitMode.SUSPEND, 4, epsilonMs, real);
            final Simulator simulator = new Simulator(set);
            simulator.setAttributes(liar, 0, budgetNs, OverrunAction.DEMOTE, 0, 0, 0);
            simulator.execute(SimulationOptions.ofDurationNs(2_000 * MS).withSeed(seed));
            if (simulator.maxResponseNs(liar) > set.tasks().get(liar).periodNs()) {
                continue;   // its begins are no longer a period apart
            }
            demoted++;
            for (int i = 0; i < 4; i++) {
                final Long wcrtNs = bound.tasks().get(i).wcrtNs();
                if (i != liar && wcrtNs != null && bound.schedulable()) {
                    final String what = "seed " + seed + ", task " + i;
                    assertTrue(simulator.maxResponseNs(i) <= wcrtNs, () -> what);
                    compared++;
                }
            }
        }
        assertTrue(compared > 200 && demoted > 50, "bounds compared: " + compared + ", sets with overruns: " + demoted);
    }
}
