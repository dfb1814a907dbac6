/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.HostWork;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.OverrunAction;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** A budget that is large enough for every job within its times, and one that is not. */
class LeastBudgetsTest {
    private static final long MS = Sets.MS;
    private static final String WINDOW = "gcaps-window-suspend";
    private static final int SETS = 600;

    private static TaskSet on(final double epsilonMs, final boolean optimistic, final Task... tasks) {
        return new TaskSet("x", new Platform(3, List.of(new Gpu((long) (epsilonMs * MS), 0, 0, MS)), optimistic, null),
            WaitMode.SUSPEND, List.of(tasks));
    }

    private static LeastBudgets.Least least(final TaskSet set, final String task) {
        return new LeastBudgets(set, Analyses.get(WINDOW).analyse(set), Model.WINDOWS, set.platform().optimistic(),
            false).of(task);
    }

    private static Simulator simulator(final TaskSet set, final boolean enough) {
        final Simulator simulator = new Simulator(set);
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            if (!task.bestEffort() && task.gpuSegmentCount() > 0) {
                final LeastBudgets.Least least = least(set, task.name());
                if (least.leastNs() > 0) {
                    simulator.setAttributes(i, 0, enough ? least.leastNs() : Math.max(1, least.windowNs()),
                        OverrunAction.DEMOTE, 0, 0, 0);
                }
            }
        }
        return simulator;
    }

    /** The highest task, on a core of its own: two updates count as its budget, since its begin does not wait. */
    @Test
    void shouldContainTwoUpdatesAfterABeginThatDoesNotWait() {
        final TaskSet set = on(3, true, Sets.task("h", 1, 80, 100, Sets.gpu(1, 4)),
            Sets.task("lo", 2, 40, 100, Sets.gpu(1, 30)));
        assertEquals(5 * MS, least(set, "h").windowNs());
        assertEquals(11 * MS, least(set, "h").leastNs());
        assertEquals(5 * MS, least(on(3, false, set.tasks().toArray(new Task[0])), "h").leastNs(), "its begin waits");
        assertEquals("", least(set, "h").refusal("h", 11 * MS));
        assertTrue(least(set, "h").refusal("h", 11 * MS - 1).endsWith("raise the budget to 11ms"));
    }

    @Test
    void shouldContainWhatStopsTheHostPart() {
        final TaskSet set = on(0.1, false, Sets.task("c", 1, 90, 100, Sets.cpu(10)),
            Sets.task("h", 1, 80, 100, Sets.gpu(4, 2)), Sets.task("lo", 2, 40, 100, Sets.gpu(1, 50)));
        assertEquals(16 * MS, least(set, "h").leastNs());
        final long boundNs = Analyses.get(WINDOW).analyse(set).tasks().get(1).wcrtNs();
        for (final boolean enough : new boolean[] {true, false}) {
            final Simulator simulator = simulator(set, enough);
            simulator.setFirstArrivals(new long[] {2 * MS, 0, MS});
            simulator.execute(SimulationOptions.ofDurationNs(90 * MS));
            assertEquals(enough, simulator.maxResponseNs(1) <= boundNs, "response " + simulator.maxResponseNs(1));
        }
    }

    /** A window of a task of equal priority that was granted keeps the core, though it has lost the GPU. */
    @Test
    void shouldContainHostPartsOfTasksOfEqualPriority() {
        final TaskSet set = on(0.5, false, Sets.task("h", 1, 60, 100, Sets.gpu(1, 2)),
            Sets.task("t", 1, 60, 100, Sets.gpu(3, 3)).withPriorities(60, 59));
        assertEquals(3 * MS, least(set, "h").windowNs());
        assertEquals(6 * MS, least(set, "h").leastNs(), "the window and 3 ms of host part");
    }

    /** Windows that end before the update for them does: each leaves two updates to the window that goes on. */
    @Test
    void shouldContainUpdatesForWindowsThatHaveEnded() {
        final TaskSet set = on(1, true, Sets.task("h", 1, 80, 500, Sets.cpu(3), Sets.gpu(0.05, 0), Sets.cpu(3),
            Sets.gpu(0.05, 0), Sets.cpu(3), Sets.gpu(0.05, 0)), Sets.task("i", 2, 40, 900, Sets.gpu(0, 30)));
        // own updates, and those of three windows of one job; all that is charged lies within the response
        final long boundNs = Analyses.get(WINDOW).analyse(set).tasks().get(1).wcrtNs();
        assertEquals(Math.min(boundNs, (30 + 2 + 3 * 2) * MS), least(set, "i").leastNs());
        final Simulator simulator = simulator(set, true);
        for (final long budgetNs : new long[] {32 * MS, least(set, "i").leastNs()}) {
            simulator.setBudgets(new long[] {0, budgetNs});
            simulator.setFirstArrivals(new long[] {3 * MS, 0});
            simulator.execute(SimulationOptions.ofDurationNs(90 * MS).with(Hold.WINDOW, true, Update.STALL));
            assertEquals(budgetNs == 32 * MS, simulator.overruns(1) > 0, budgetNs + " ns");
        }
    }

    /** The context is enabled while a window of another task of the process has it. */
    @Test
    void shouldContainWaitsForWindowsOfTheSameContext() {
        final TaskSet set = on(0, true, Sets.task("a", 1, 60, 47, Sets.cpu(1), Sets.gpu(1, 2)).inProcess("p"),
            Sets.task("m", 2, 59, 68, Sets.gpu(0.75, 4)), Sets.task("b", 2, 58, 135, Sets.gpu(1, 1.75)).inProcess("p"));
        assertEquals(Analyses.get(WINDOW).analyse(set).tasks().get(2).wcrtNs(), least(set, "b").leastNs());
        final Simulator simulator = new Simulator(set);
        for (final long budgetNs : new long[] {2_750_000, least(set, "b").leastNs()}) {
            long overruns = 0;
            simulator.setBudgets(new long[] {0, 0, budgetNs});
            for (int late = 0; late < 20; late++) {
                simulator.setFirstArrivals(new long[] {1, late * MS / 10, 0});
                simulator.execute(SimulationOptions.ofDurationNs(40 * MS).with(Hold.WINDOW, true, Update.SHARE));
                overruns += simulator.overruns(2);
            }
            assertEquals(budgetNs == 2_750_000, overruns > 0, budgetNs + " ns: " + overruns);
        }
    }

    /** A budget leaves out 100 ms of updates; of two of 60 ms before the grant 20 ms count. */
    @Test
    void shouldContainUpdatesBeyondWhatABudgetLeavesOut() {
        final TaskSet set = on(60, false, Sets.task("h", 1, 80, 2_000, Sets.gpu(0, 10)),
            Sets.task("l", 2, 40, 2_100, Sets.gpu(0, 30)));
        assertEquals(30 * MS, least(set, "h").leastNs());
        final Simulator simulator = new Simulator(set);
        for (final long budgetNs : new long[] {10 * MS, 30 * MS}) {
            simulator.setBudgets(new long[] {budgetNs, 0});
            simulator.setFirstArrivals(new long[] {1, 0});
            simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS));
            assertEquals(budgetNs == 10 * MS, simulator.overruns(0) > 0, budgetNs + " ns");
        }
    }

    /** No bound is exceeded with the least budgets; with budgets of the windows alone some are. */
    @Test
    void shouldLeaveEveryBoundWithTheLeastBudgets() {
        int compared = 0;
        final List<String> exceeded = new ArrayList<>();
        for (int seed = 0; seed < SETS; seed++) {
            final SplittableRandom random = new SplittableRandom(seed);
            final TaskSet plain = RandomSets.of(seed);
            final TaskSet set = plain.withPlatform(new Platform(plain.platform().cpus(), plain.platform().gpus(),
                random.nextBoolean(), null));
            final AnalysisResult bounds = Analyses.get(WINDOW).analyse(set);
            if (!bounds.schedulable()) {
                continue;
            }
            for (final boolean enough : new boolean[] {true, false}) {
                final Simulator simulator = simulator(set, enough);
                simulator.execute(SimulationOptions.ofDurationNs(2_000 * MS)
                    .with(Hold.WINDOW, set.platform().optimistic(), Update.values()[random.nextInt(
                        Update.values().length)])
                    .with(Arrivals.PERIODIC, Offsets.RANDOM, Execution.WORST, Jitter.RANDOM)
                    .with(HostWork.values()[random.nextInt(HostWork.values().length)]).withSeed(seed));
                for (int i = 0; i < set.tasks().size(); i++) {
                    final Long boundNs = bounds.tasks().get(i).wcrtNs();
                    final boolean above = boundNs != null && simulator.maxResponseNs(i) > boundNs;
                    final String what = "seed " + seed + ", task " + i;
                    assertTrue(!enough || !above, () -> what + ": " + simulator.maxResponseNs(0));
                    compared += enough && boundNs != null ? 1 : 0;
                    if (above) {
                        exceeded.add(what);
                    }
                }
            }
        }
        assertTrue(compared > SETS, "bounds compared: " + compared);
        assertTrue(exceeded.size() > SETS / 100, "exceeded with too small budgets: " + exceeded);
    }
}
