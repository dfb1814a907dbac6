/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.MissLimit;
import dev.gpuseg.analysis.model.Overload;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.HostWork;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.analysis.sweep.CampaignSets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.ToLongBiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Theorem 13 of {@code docs/misses.md} against the simulator. */
@Timeout(300)
class WeaklyHardSoundnessTest {
    private static final int SETS = Integer.getInteger("gpuseg.misses.sets", 3_000);
    private static final long SEED = Long.getLong("gpuseg.misses.seed", 5);
    private static final int RUNS = Integer.getInteger("gpuseg.misses.runs", 3);
    private static final int CLIMBS = Integer.getInteger("gpuseg.misses.climbs", 15);

    private record Counts(long sets, long late, long runs, long exceeded, long attained) {
    }

    /** A campaign set: some tasks overload rarely, others have deadlines below their bounds and may miss them. */
    private static TaskSet set(final long k, final WaitMode mode) {
        final SplittableRandom random = Seeds.random(SEED, 91, k);
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : CampaignSets.generate(SEED, k).tasks()) {
            tasks.add(task.inProcess(null));
        }
        final TaskSet hard = CampaignSets.generate(SEED, k).withMode(mode).withTasks(tasks);
        final Analysis analysis = Analyses.get("gcaps-window-" + mode.word());
        if (!Hypotheses.conflict(analysis.description(), hard).isEmpty()) {
            return hard;
        }
        final AnalysisResult bounds = analysis.analyse(hard);
        final Map<String, Long> maxPeriods = new HashMap<>();
        for (int i = 0; i < tasks.size(); i++) {
            final Task task = tasks.get(i);
            final int kind = task.bestEffort() ? 2 : random.nextInt(3);
            if (kind == 0) {
                final long period = random.nextInt(6) == 0 ? task.periodNs()
                    : task.periodNs() * (2 + random.nextInt(30));
                tasks.set(i, task.withOverload(null, new Overload(period, random.nextInt(60))));
            } else if (kind == 1 && bounds.tasks().get(i).wcrtNs() != null) {
                final int jobs = 2 + random.nextInt(15);
                final long deadline = Math.max(task.jitterNs() + 1,
                    bounds.tasks().get(i).wcrtNs() * (40 + random.nextInt(60)) / 100);
                tasks.set(i, task.withTimes(deadline, task.jitterNs(), task.blockingNs())
                    .withOverload(new MissLimit(jobs - 1, jobs), null));
                maxPeriods.put(task.name(), task.periodNs() + (random.nextBoolean() ? 0
                    : random.nextLong(task.periodNs() / 4 + 1)));
            }
        }
        return hard.withTasks(tasks).withChains(new Chains(List.of(), maxPeriods));
    }

    private static SimulationOptions options(final SplittableRandom random, final TaskSet set) {
        final long longest = set.tasks().stream().mapToLong(Task::periodNs).max().orElseThrow();
        return SimulationOptions.ofDurationNs(longest * (4 + random.nextInt(16))).with(random.nextBoolean()
            ? Arrivals.PERIODIC : Arrivals.SPORADIC, random.nextInt(3) == 0 ? Offsets.SYNCHRONOUS : Offsets.RANDOM,
            random.nextInt(4) == 0 ? Execution.RANDOM : Execution.WORST, Jitter.RANDOM)
            .with(random.nextBoolean() ? HostWork.FIRST : HostWork.ANYWHERE).withSeed(random.nextLong());
    }

    /** Compares the misses of all sets with what a rule says of a bound; -1 = none. */
    private static Counts compare(final int sets, final ToLongBiFunction<TaskSet, MissBound> rule,
        final boolean untilExceeded) {
        long late = 0;
        long runs = 0;
        long exceeded = 0;
        long attained = 0;
        for (long k = 0; k < sets && !(untilExceeded && exceeded > 0); k++) {
            for (final WaitMode mode : WaitMode.values()) {
                final TaskSet set = set(k, mode);
                final Analysis analysis = Analyses.get("gcaps-window-" + mode.word());
                if (!WeaklyHard.concerns(set) || !Hypotheses.conflict(analysis.description(), set).isEmpty()) {
                    continue;
                }
                final AnalysisResult result = analysis.analyse(set);
                final long[] bound = bounds(set, result, rule);
                boolean any = false;
                for (int i = 0; i < bound.length; i++) {
                    any |= bound[i] >= 0 && result.tasks().get(i).wcrtNs() > set.tasks().get(i).deadlineNs();
                }
                if (!any) {
                    continue;   // nobody can be late, or nothing is known
                }
                late++;
                final long[] most = new long[bound.length];
                runs += simulate(set, k, most);
                boolean over = false;
                boolean equal = false;
                for (int i = 0; i < bound.length; i++) {
                    over |= bound[i] >= 0 && most[i] > bound[i];
                    equal |= bound[i] > 0 && most[i] == bound[i];
                }
                exceeded += over ? 1 : 0;
                attained += equal ? 1 : 0;
            }
        }
        return new Counts(sets, late, runs, exceeded, attained);
    }

    private static long[] bounds(final TaskSet set, final AnalysisResult result,
        final ToLongBiFunction<TaskSet, MissBound> rule) {
        final long[] bound = new long[set.tasks().size()];
        Arrays.fill(bound, -1);
        for (final MissBound miss : result.misses()) {
            for (int i = 0; i < bound.length; i++) {
                if (set.tasks().get(i).name().equals(miss.task()) && miss.bound() != null) {
                    bound[i] = rule.applyAsLong(set, miss);
                }
            }
        }
        return bound;
    }

    /** Random runs, then changes of first arrivals that are kept while they do not lower the number of misses. */
    private static long simulate(final TaskSet set, final long k, final long[] most) {
        final SplittableRandom random = Seeds.random(SEED, 92, k);
        final Simulator simulator = new Simulator(set);
        long[] arrivals = null;
        SimulationOptions options = null;
        long best = -1;
        for (int run = 0; run < RUNS + CLIMBS; run++) {
            long[] tried = null;
            SimulationOptions now = options(random, set);
            if (run >= RUNS) {
                tried = arrivals == null || random.nextInt(6) == 0 ? set.tasks().stream()
                    .mapToLong(task -> random.nextLong(task.periodNs())).toArray() : arrivals.clone();
                final int moved = random.nextInt(tried.length);
                tried[moved] = random.nextBoolean() ? random.nextLong(set.tasks().get(moved).periodNs())
                    : tried[random.nextInt(tried.length)] + random.nextInt(2);
                now = options == null || random.nextInt(4) == 0 ? now : options;
            }
            simulator.setFirstArrivals(tried);
            simulator.execute(now);
            long sum = 0;
            for (int i = 0; i < most.length; i++) {
                if (set.tasks().get(i).missLimit() != null) {
                    most[i] = Math.max(most[i], simulator.mostMisses(i));
                    sum += simulator.mostMisses(i);
                }
            }
            if (tried != null && sum >= best) {
                best = sum;
                arrivals = tried;
                options = now;
            }
        }
        return RUNS + CLIMBS;
    }

    @Test
    void shouldNeverSeeMoreMissesThanTheBound() {
        final Counts counts = compare(SETS, (set, miss) -> miss.bound(), false);
        assertEquals(0, counts.exceeded(), counts.toString());
        assertTrue(counts.late() > SETS / 50, "sets in which a task can be late: " + counts);
        assertTrue(counts.attained() > 10, "the bound is attained: " + counts);
    }

    /** Planted errors: each is exceeded. */
    @Test
    void shouldFindABoundThatCountsTooFewMisses() {
        assertTrue(compare(SETS, (set, miss) -> Math.max(0, miss.bound() - 1), true).exceeded() > 0, "one less");
        assertTrue(compare(SETS, (set, miss) -> miss.bound() == 0 ? 0 : forget(set, miss, 0), true).exceeded() > 0,
            "the reach of an overload job");
        assertTrue(compare(SETS, (set, miss) -> miss.bound() == 0 ? 0 : forget(set, miss, 1), true).exceeded() > 0,
            "an overload task");
    }

    /** The bound without the reach W (kind 0), or without the first overload task (kind 1). */
    private static long forget(final TaskSet set, final MissBound miss, final int kind) {
        final Task task = set.tasks().stream().filter(t -> t.name().equals(miss.task())).findFirst().orElseThrow();
        final long span = (task.missLimit().jobs() - 1L) * set.chains().maxPeriodNs().get(task.name());
        long sum = 0;
        boolean first = true;
        for (final Task source : set.tasks()) {
            if (source.overload() != null && !source.bestEffort()) {
                final boolean counts = kind == 0 || !first;
                first = false;
                sum += !counts ? 0 : kind == 0 ? span / source.overload().periodNs() : miss.bound();
            }
        }
        return kind == 0 ? sum : Math.min(sum, miss.bound());
    }
}
