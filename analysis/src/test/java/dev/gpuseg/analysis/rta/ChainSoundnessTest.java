/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** No simulated run of a random set shows a chain that is slower, or older, than its bound. */
class ChainSoundnessTest {
    private static final List<String> ANALYSES = List.of("gcaps-window-suspend", "gcaps-window-busy", "gate-suspend",
        "edf-edf-suspend");
    private static final long MS = 1_000_000L;

    /** What the runs showed, and how close they came. */
    private static final class Tally {
        private long runs;
        private long withEvents;
        private long closestPpm;
        private final List<String> exceeded = new ArrayList<>();
        /** Runs that exceeded a bound from which one term was dropped. */
        private long withoutLastWait;
        private long withoutFirstWait;
        private long withoutLastResponse;
    }

    @Test
    @Timeout(300)
    void shouldNeverExceedTheBoundsOfAChain() {
        final Tally tally = run(1, 2_000);
        assertEquals(List.of(), tally.exceeded);
        assertTrue(tally.withEvents > 200, "runs with event edges: " + tally.withEvents);
        // a bound that is never nearly reached would not be tested by this
        assertTrue(tally.closestPpm > 900_000, "closest: " + tally.closestPpm + " ppm");
        // and a wrong bound must be found
        assertTrue(tally.withoutLastWait > 0 && tally.withoutFirstWait > 0 && tally.withoutLastResponse > 0,
            tally.withoutLastWait + ", " + tally.withoutFirstWait + ", " + tally.withoutLastResponse);
    }

    @Test
    @Tag("long")
    @Timeout(1800)
    void shouldNeverExceedTheBoundsOfAChainInManyRuns() {
        assertEquals(List.of(), run(1_000_000, 100_000).exceeded);
    }

    private static Tally run(final long firstSeed, final long runs) {
        final Tally tally = new Tally();
        for (long seed = firstSeed; tally.runs < runs; seed++) {
            final Analysis analysis = Analyses.get(ANALYSES.get((int) (seed % ANALYSES.size())));
            final TaskSet set = RandomChains.of(seed).withMode(analysis.mode() == WaitMode.BUSY ? WaitMode.BUSY
                : WaitMode.SUSPEND);
            final AnalysisResult result = analysis.analyse(set);
            if (result.schedulable()) {
                simulate(seed, set, analysis, result, tally);
            }
        }
        return tally;
    }

    private static void simulate(final long seed, final TaskSet set, final Analysis analysis,
        final AnalysisResult result, final Tally tally) {
        final Simulator simulator = new Simulator(set);
        final SplittableRandom random = new SplittableRandom(seed);
        for (int k = 0; k < 4; k++) {
            tally.runs++;
            tally.withEvents += set.chains().eventPredecessors().isEmpty() ? 0 : 1;
            simulator.execute(SimulationOptions.ofDurationNs(2_000 * MS)
                .with(analysis.description().model().scheduler(), analysis.description().model().cores())
                .with(Hold.WINDOW, random.nextBoolean(), random.nextBoolean() ? Update.STALL : Update.SHARE)
                .with(random.nextBoolean() ? Arrivals.SPORADIC : Arrivals.PERIODIC, Offsets.RANDOM,
                    random.nextInt(3) > 0 ? Execution.RANDOM : Execution.WORST, Jitter.RANDOM)
                .withSeed(random.nextLong()));
            final String where = "seed " + seed + ", run " + k + ", " + analysis.name() + ": ";
            for (int i = 0; i < set.tasks().size(); i++) {
                final Long bound = result.tasks().get(i).wcrtNs();
                if (bound != null && simulator.maxResponseNs(i) > bound) {
                    tally.exceeded.add(where + "task " + i + " " + simulator.maxResponseNs(i) + " > " + bound);
                }
            }
            for (int c = 0; c < result.chains().size(); c++) {
                compare(where + "chain " + c + ' ', result.chains().get(c), simulator.maxReactionNs(c),
                    simulator.maxAgeNs(c), tally);
            }
        }
    }

    private static void compare(final String where, final ChainResult chain, final long reactionNs, final long ageNs,
        final Tally tally) {
        if (reactionNs > chain.reaction().boundNs()) {
            tally.exceeded.add(where + "reaction " + reactionNs + " > " + chain.reaction().boundNs());
        }
        if (ageNs > chain.age().boundNs()) {
            tally.exceeded.add(where + "age " + ageNs + " > " + chain.age().boundNs());
        }
        final List<ChainResult.Step> steps = chain.steps();
        tally.closestPpm = Math.max(tally.closestPpm, Math.max(reactionNs * 1_000_000 / chain.reaction().boundNs(),
            ageNs * 1_000_000 / chain.age().boundNs()));
        tally.withoutLastWait += reactionNs > chain.age().boundNs() ? 1 : 0;
        tally.withoutFirstWait += steps.get(0).inAge() && ageNs > chain.age().boundNs() - steps.get(0).waitNs() ? 1 : 0;
        tally.withoutLastResponse += reactionNs > chain.reaction().boundNs()
            - steps.get(steps.size() - 1).responseNs() ? 1 : 0;
    }
}
