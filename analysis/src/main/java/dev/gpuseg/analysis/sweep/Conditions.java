/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.CoreThrottling;
import dev.gpuseg.analysis.rta.LeastBudgets;
import dev.gpuseg.analysis.rta.Model;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * What runs are given beside their sets, so small that whatever is claimed of it decides: the least budgets of all
 * windows, and cores that the kernel throttles as soon as their real-time threads have used what T1 says they may need.
 * Neither may be noticed. Tests override what is claimed.
 */
class Conditions {
    /**
     * What the windows of a set may use, where bounds of the claim are proven for tasks with budgets.
     *
     * @param claim      whose bounds they are
     * @param set        in the mode of the claim
     * @param result     its bounds, all tasks schedulable
     * @param optimistic whether begins return at once where nothing could outrank the task
     * @return ns by index in the file, 0 = none; null = no task has a budget
     */
    long[] budgets(final Claim claim, final TaskSet set, final AnalysisResult result, final boolean optimistic) {
        final Model model = claim.analysis().description().model();
        final Hold hold = claim.mechanism().hold();
        final boolean boosted = hold == Hold.BOOST || hold == Hold.CEILING;
        if (!claim.claimed() || model == Model.TURNS || boosted && set.mode() == WaitMode.BUSY || isE3(claim, set)) {
            return null;   // by turns nobody holds the GPU; no daemon boosts threads that spin
        }
        final LeastBudgets least = leastBudgets(set, result, model, optimistic, boosted);
        final long[] budgets = new long[set.tasks().size()];
        boolean any = false;
        for (int i = 0; i < budgets.length; i++) {
            final Task task = set.tasks().get(i);
            if (!task.bestEffort() && task.gpuSegmentCount() > 0) {
                budgets[i] = least.of(task.name()).leastNs();
                any |= budgets[i] > 0;
            }
        }
        return any ? budgets : null;
    }

    /** As the constructor of {@link LeastBudgets}. */
    LeastBudgets leastBudgets(final TaskSet set, final AnalysisResult result, final Model model,
        final boolean optimistic, final boolean boosted) {
        return new LeastBudgets(set, result, model, optimistic, boosted);
    }

    /** As {@link CoreThrottling#needNs}. */
    long needNs(final TaskSet set, final int core, final long spanNs) {
        return CoreThrottling.needNs(set, set.mode(), core, spanNs);
    }

    /**
     * For how long the kernel gives each core to real-time threads: as long as T1 says that they need it at most.
     *
     * @param claim    whose mechanism runs
     * @param set      in the mode of the claim
     * @param periodNs of the kernel
     * @return ns by core from 0, {@link Long#MAX_VALUE} where T1 does not hold; null = no core is throttled
     */
    long[] runtimes(final Claim claim, final TaskSet set, final long periodNs) {
        if (!claim.claimed() || isE3(claim, set)) {
            return null;
        }
        final long[] runtimes = new long[set.platform().cpus()];
        boolean any = false;
        for (int c = 0; c < runtimes.length; c++) {
            final long need = needNs(set, c + 1, periodNs);
            runtimes[c] = need < periodNs ? need : Long.MAX_VALUE;
            any |= need < periodNs;
        }
        return any ? runtimes : null;
    }

    /** Threads that spin for each other are to be found as such: neither a budget nor the kernel may part them. */
    private static boolean isE3(final Claim claim, final TaskSet set) {
        return set.mode() == WaitMode.BUSY && claim.mechanism().cpuPolicy() == CpuPolicy.EDF;
    }

    /** A period of the kernel in the size of those of the tasks: from half of the shortest to four of the longest. */
    static long drawPeriod(final SplittableRandom random, final TaskSet set) {
        final long[] periods = set.tasks().stream().mapToLong(Task::periodNs).sorted().toArray();
        final long base = random.nextBoolean() ? periods[0] : periods[periods.length - 1];
        return Math.max(1, base / 2 + random.nextLong(base * (random.nextBoolean() ? 1 : 4)));
    }

    /** Budgets and throttling of one run; null where it has none. */
    record Given(long[] budgetsNs, long periodNs, long[] runtimesNs) {
        @Override
        public String toString() {
            return (budgetsNs == null ? "no budgets" : "budgets in ns: " + Arrays.toString(budgetsNs))
                + (runtimesNs == null ? "" : "; cores throttled every " + periodNs + " ns after ns: "
                + Arrays.toString(runtimesNs));
        }
    }
}
