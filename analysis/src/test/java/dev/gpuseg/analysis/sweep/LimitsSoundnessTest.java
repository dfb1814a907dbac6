/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.BudgetError;
import dev.gpuseg.analysis.rta.LeastBudgets;
import dev.gpuseg.analysis.rta.LimitError;
import dev.gpuseg.analysis.rta.Model;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.analysis.sweep.WitnessSets.Shape;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.function.LongFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Clock, new contexts, stops, least budgets and throttled cores: nothing that claims to be sound is exceeded, and an
 * error in any term of them is found within {@link #MOST_SETS} sets. The many runs are
 * {@code gpuseg sweep --figure soundness --analysis claimed}.
 */
@Timeout(300)
class LimitsSoundnessTest {
    private static final long SEED = 20_261_130;
    private static final long MS = 1_000_000L;
    private static final int SETS = 240;
    private static final int RUNS = 4;
    private static final int CLIMBS = 40;
    private static final int STEP = 10;
    private static final int MOST_SETS = 400;

    private static Claim claim(final String name) {
        return CampaignSweep.claims(true, List.of(name)).get(0);
    }

    @Test
    void shouldNeverExceedWhatIsClaimedWithLimitsBudgetsAndThrottledCores() {
        final List<Claim> claims = CampaignSweep.claims(true, List.of());
        final Campaign campaign = new Campaign(claims, k -> LimitedSets.mixed(SEED, k), SEED, RUNS, 4);
        final Map<String, Long> counts = campaign.run(0, SETS);
        assertEquals(List.of(), campaign.excesses().stream().map(Campaign.Excess::text).toList());
        long limited = 0;
        long budgeted = 0;
        long throttled = 0;
        for (final Claim claim : claims) {
            assertEquals(0, counts.get("exceeded sets of " + claim.title()), claim.title());
            assertTrue(counts.get("limited of " + claim.title()) > counts.get("runs of " + claim.title()) / 6,
                () -> claim.title() + counts);
            limited += counts.get("limited of " + claim.title());
            budgeted += counts.get("budgeted of " + claim.title());
            throttled += counts.get("throttled of " + claim.title());
        }
        assertTrue(limited > 8_000 && budgeted > 6_000 && throttled > 6_000, limited + ", " + budgeted + ", "
            + throttled);
    }

    /** Every third set of the campaign is the one that it was without limits. */
    @Test
    void shouldLeaveEveryThirdSetAsItIs() {
        int limited = 0;
        for (long k = 0; k < 90; k++) {
            final TaskSet set = LimitedSets.mixed(SEED, k);
            if (k % 3 == 0) {
                assertEquals(CampaignSets.mixed(SEED, k), set);
            }
            limited += LimitedSets.isLimited(set) ? 1 : 0;
        }
        assertEquals(60, limited);
    }

    static List<Arguments> limits() {
        final List<Arguments> cases = new ArrayList<>();
        for (final LimitError error : LimitError.values()) {
            for (final String name : List.of("gcaps-window-suspend", "gcaps-window-busy", "gcaps-boost-tight-suspend",
                "gate-suspend", "edf-fp-suspend")) {
                cases.add(Arguments.of(error, name));
            }
        }
        return cases;
    }

    @ParameterizedTest
    @MethodSource("limits")
    void shouldFindABoundThatCountsLimitsWrong(final LimitError error, final String name) {
        final Claim right = claim(name);
        final Claim wrong = new Claim(error.of(right.analysis()), right.mechanism(), false);
        assertTrue(exceeded(new Campaign(List.of(wrong), k -> k % 3 == 2 ? alone(k) : LimitedSets.withLimits(k % 3 == 0
            ? CampaignSets.mixed(SEED, k) : WitnessSets.generate(Shape.TINY, SEED, k), SEED, k), SEED, RUNS, CLIMBS),
            wrong, MOST_SETS) > 0, name + " with " + error + " is not exceeded");
    }

    /** One task whose window is longer than the time between two new contexts. */
    private static TaskSet alone(final long k) {
        final SplittableRandom random = new SplittableRandom(k);
        final Gpu gpu = new Gpu(random.nextInt(2) * MS / 2, 0, 0, MS);
        final Platform platform = Platform.of(1, random.nextBoolean() ? gpu : gpu.withStalls(3 * MS, 40 * MS));
        return new TaskSet("alone-" + k, platform.withLimits(new PlatformLimits(PlatformLimits.CLOCK_MIN
            + random.nextInt(500), false, (2 + random.nextInt(3)) * MS, (20 + random.nextInt(10)) * MS, 0, 0)),
            WaitMode.SUSPEND, List.of(alone(new Segment.Gpu(random.nextInt(3) * MS,
            (20 + random.nextInt(20)) * MS))));
    }

    private static Task alone(final Segment window) {
        return new Task("t", 1, 0, 100 * MS, 100 * MS, 0, 0, 9, 9, false, List.of(new Segment.Cpu(MS), window));
    }

    /** Sets until one is exceeded. */
    private static long exceeded(final Campaign campaign, final Claim claim, final int sets) {
        long exceeded = 0;
        for (int k = 0; k < sets && exceeded == 0; k += STEP) {
            exceeded = campaign.run(k, k + STEP).get("exceeded sets of " + claim.title());
        }
        return exceeded;
    }

    /** Sets in which the term is a large part of a budget. */
    private static LongFunction<TaskSet> sets(final BudgetError error) {
        return switch (error) {
            case BEGIN, ONE_UPDATE -> k -> WitnessSets.generate(Shape.UPDATES, SEED, k);
            case LOST -> LimitsSoundnessTest::shortWindows;
            case BEYOND -> LimitsSoundnessTest::slowUpdates;
            case SWITCH -> k -> WitnessSets.generate(Shape.SWITCHES, SEED, k);
            case HOST_ABOVE -> k -> WitnessSets.generate(Shape.STOPPED, SEED, k);
            case CARRIED -> k -> WitnessSets.generate(Shape.CARRY_IN, SEED, k);
            case TIED -> k -> WitnessSets.generate(Shape.OVERLAP, SEED, k);
            case PIECES -> LimitsSoundnessTest::stoppedInPieces;
            case STOPS -> k -> LimitedSets.withLimits(WitnessSets.generate(Shape.TINY, SEED, k), SEED, k);
            default -> k -> WitnessSets.generate(Shape.TINY, SEED, k);
        };
    }

    /** Windows above that end before the update for them does. */
    private static TaskSet shortWindows(final long k) {
        final SplittableRandom random = new SplittableRandom(k);
        final long epsilonNs = (1 + random.nextInt(3)) * MS;
        final List<Segment> work = new ArrayList<>();
        for (int windows = 3 + random.nextInt(5); windows > 0; windows--) {
            work.add(new Segment.Cpu(2 * epsilonNs + random.nextLong(MS)));
            work.add(new Segment.Gpu(random.nextLong(epsilonNs / 2), 0));
        }
        return twoTasks("short-" + k, epsilonNs, work, List.of(new Segment.Gpu(0, (20 + random.nextInt(40)) * MS)));
    }

    /** A stop before and one after a long window above, which are farther apart than the window below is long. */
    private static TaskSet stoppedInPieces(final long k) {
        final SplittableRandom random = new SplittableRandom(k);
        final TaskSet set = twoTasks("pieces-" + k, 0, List.of(new Segment.Cpu(random.nextInt(9) * MS),
            new Segment.Gpu(0, 60 * MS)), List.of(new Segment.Gpu(0, (10 + random.nextInt(20)) * MS)));
        return set.withPlatform(set.platform().withGpus(List.of(set.platform().gpus().get(0).withStalls(5 * MS,
            50 * MS))));
    }

    /** Updates that take longer together than a budget leaves out. */
    private static TaskSet slowUpdates(final long k) {
        return twoTasks("slow-" + k, (40 + 4 * (k % 10)) * MS, List.of(new Segment.Gpu(0, 10 * MS)), List.of(
            new Segment.Gpu(0, 30 * MS)));
    }

    private static TaskSet twoTasks(final String id, final long epsilonNs, final List<Segment> above,
        final List<Segment> below) {
        final Task first = new Task("h", 1, 0, 2_000 * MS, 2_000 * MS, 0, 0, 60, 60, false, above);
        final Task second = new Task("l", 2, 0, 2_100 * MS, 2_100 * MS, 0, 0, 50, 50, false, below);
        return new TaskSet(id, new Platform(2, List.of(new Gpu(epsilonNs, epsilonNs, 0, MS)), true, null),
            WaitMode.SUSPEND, List.of(first, second));
    }

    @ParameterizedTest
    @EnumSource
    void shouldFindALeastBudgetThatHasForgottenSomething(final BudgetError error) {
        final Claim claim = claim(error == BudgetError.SWITCH ? "gate-suspend" : "gcaps-window-suspend");
        final Conditions forgetful = new Conditions() {
            @Override
            LeastBudgets leastBudgets(final TaskSet set, final AnalysisResult result, final Model model,
                final boolean optimistic, final boolean boosted) {
                return error.of(set, result, model, optimistic, boosted);
            }
        };
        final Campaign wrong = new Campaign(List.of(claim), sets(error), SEED, RUNS, CLIMBS, forgetful);
        assertTrue(exceeded(wrong, claim, MOST_SETS) > 0, "without " + error + " no budget is used up");
        assertTrue(wrong.excesses().stream().anyMatch(e -> e.limit() == Campaign.Limit.BUDGET), error::toString);
        final Campaign right = new Campaign(List.of(claim), sets(error), SEED, RUNS, CLIMBS);
        assertEquals(0, exceeded(right, claim, 2 * STEP), () -> error + ": " + right.excesses());
    }

    @Test
    void shouldFindThatACoreNeedsWhatJobsCarryIn() {
        final Claim claim = claim("gcaps-window-suspend");
        final Conditions wrong = new Conditions() {
            @Override
            long needNs(final TaskSet set, final int core, final long spanNs) {
                return LimitError.needWithoutCarryIn(set, set.mode(), core, spanNs);
            }
        };
        final Campaign campaign = new Campaign(List.of(claim), k -> CampaignSets.mixed(SEED, k), SEED, RUNS, CLIMBS,
            wrong);
        assertTrue(exceeded(campaign, claim, MOST_SETS) > 0);
        assertTrue(campaign.excesses().stream().anyMatch(e -> e.limit() == Campaign.Limit.CORE));
    }

    /** A core that is throttled delays what runs on it until the next period, and no other one. */
    @Test
    void shouldThrottleACoreOfWhichTooMuchIsUsed() {
        final TaskSet set = new TaskSet("throttled", Platform.of(2, Gpu.ofEpsilon(0)), WaitMode.SUSPEND, List.of(
            new Task("a", 1, 0, 100 * MS, 100 * MS, 0, 0, 2, 2, false, List.of(new Segment.Cpu(10 * MS))),
            new Task("b", 2, 0, 100 * MS, 100 * MS, 0, 0, 1, 1, false, List.of(new Segment.Cpu(10 * MS)))));
        final Simulator simulator = new Simulator(set);
        simulator.setThrottling(20 * MS, new long[] {4 * MS, 10 * MS});
        simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS));
        assertTrue(simulator.maxResponseNs(0) >= 22 * MS && simulator.maxResponseNs(0) <= 58 * MS,
            "a: " + simulator.maxResponseNs(0));
        assertEquals(10 * MS, simulator.maxResponseNs(1), "exactly its need is no reason to throttle it");
        assertTrue(simulator.throttled(0) >= 10 && simulator.throttled(1) == 0);
        simulator.setThrottling(20 * MS, null);
        simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS));
        assertEquals(10 * MS, simulator.maxResponseNs(0));
    }
}
