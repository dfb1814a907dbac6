/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Stops of the GPU that the scheduler does not cause (docs/stalls.md): bounds against the simulator. */
@Timeout(300)
class StallTest {
    private static final long MS = 1_000_000L;
    private static final long SEED = 4_711;
    private static final int SETS = 600;
    private static final int RUNS = 3;

    /** The campaign's sets, each GPU stopped by others now and then. */
    private static TaskSet stalled(final long k) {
        final TaskSet set = CampaignSets.generate(SEED, k);
        final SplittableRandom random = new SplittableRandom(k);
        final List<Gpu> gpus = new ArrayList<>();
        for (final Gpu gpu : set.platform().gpus()) {
            final long length = 1 + random.nextLong(2 * MS);
            gpus.add(gpu.withStalls(length, length + 1 + random.nextLong(100 * MS)));
        }
        return set.withPlatform(new Platform(set.platform().cpus(), gpus, set.platform().optimistic(), null));
    }

    private static boolean covers(final Analysis analysis) {
        return analysis.claim() == Analysis.Claim.SOUND && !analysis.name().equals("gcaps-boost-busy");
    }

    @Test
    void shouldNeverExceedABoundThatCoversStops() {
        final List<Claim> claims = Claim.all().stream().filter(c -> c.claimed() && covers(c.analysis())).toList();
        assertEquals(13, claims.size());
        final Campaign campaign = new Campaign(claims, StallTest::stalled, SEED, RUNS);
        final Map<String, Long> counts = campaign.run(0, SETS);
        long runs = 0;
        for (final Claim claim : claims) {
            runs += counts.get("runs of " + claim.title());
            assertEquals(0, counts.get("exceeded sets of " + claim.title()), () -> claim.title() + ": "
                + campaign.excesses());
            // a bound that is never nearly reached would not be tested by this
            assertTrue(counts.get("max ppm of " + claim.title()) > 800_000, () -> claim.title() + counts);
        }
        assertTrue(runs >= 1_000, "runs: " + runs);
    }

    /** Without the term the simulator must be able to exceed the bound, or it would prove nothing. */
    @Test
    void shouldExceedTheBoundThatLeavesStopsOut() {
        final List<Segment> work = List.of(new Segment.Cpu(MS), new Segment.Gpu(MS, 20 * MS, 21 * MS));
        final Gpu gpu = new Gpu(MS, MS, 0, MS);
        final TaskSet without = new TaskSet("one", Platform.of(1, gpu), WaitMode.SUSPEND,
            List.of(new Task("only", 1, 0, 100 * MS, 100 * MS, 0, 0, 50, 50, false, work)));
        final TaskSet with = without.withPlatform(Platform.of(1, gpu.withStalls(3 * MS, 10 * MS)));
        final Analysis analysis = Analyses.get("gcaps-window-suspend");
        final Simulator simulator = new Simulator(with);
        long worst = 0;
        for (int seed = 0; seed < 20; seed++) {
            simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS).withSeed(seed));
            worst = Math.max(worst, simulator.maxResponseNs(0));
        }
        final long bound = analysis.analyse(with).tasks().get(0).wcrtNs();
        assertTrue(worst > analysis.analyse(without).tasks().get(0).wcrtNs(), "worst " + worst);
        assertTrue(worst <= bound, worst + " above " + bound);
    }

    /** By hand: C 1, G 21, epsilon 1 grown to 4 by one stop; 2 + 2 updates of 4, and the stops of 3 every 30. */
    @Test
    void shouldGiveTheBoundOfThePaper() {
        final List<Segment> work = List.of(new Segment.Cpu(MS), new Segment.Gpu(MS, 20 * MS, 21 * MS));
        final Gpu gpu = new Gpu(MS, MS, 0, MS).withStalls(3 * MS, 30 * MS);
        final TaskSet set = new TaskSet("one", Platform.of(1, gpu), WaitMode.SUSPEND,
            List.of(new Task("only", 1, 0, 100 * MS, 100 * MS, 0, 0, 50, 50, false, work)));
        assertEquals(4 * MS, gpu.stalledEpsilonNs());
        final AnalysisResult result = Analyses.get("gcaps-window-suspend").analyse(set);
        // 22 + 8 = 30; ceil((36 + 3) / 30) = 2 stops of 3
        assertEquals(36 * MS, result.tasks().get(0).wcrtNs());
    }

    @Test
    void shouldRefuseToSayAnythingByAnAnalysisThatDoesNotContainThem() {
        int refused = 0;
        for (final Analysis analysis : Analyses.all()) {
            if (!covers(analysis)) {
                final String text = assertThrows(InvalidModelException.class, () -> analysis.analyse(stalled(1)),
                    analysis.name()).getMessage();
                assertTrue(text.contains(analysis.name()) && text.contains("use gcaps-window-"), text);
                refused++;
            }
        }
        assertTrue(refused >= 8, "refused: " + refused);
    }

    @Test
    void shouldRefuseStopsThatLeaveNothing() {
        assertThrows(InvalidModelException.class, () -> Gpu.ofEpsilon(MS).withStalls(MS, MS));
        assertThrows(InvalidModelException.class, () -> Gpu.ofEpsilon(MS).withStalls(0, MS));
        assertEquals(MS, Gpu.ofEpsilon(MS).stalledEpsilonNs());
    }

    /**
     * A thread that spins through a stop of its GPU keeps the core from the host part of a window of another GPU: found
     * by the campaign, at the gate, whose bound had such a thread spin for its own window only.
     */
    @Test
    void shouldCountThatAThreadSpinsThroughStopsOfItsGpuAtAGate() {
        final Gpu gpu = new Gpu(0, 0, 0, MS);
        final Task spins = new Task("spins", 1, 1, 100 * MS, 100 * MS, 0, 0, 60, 60, false, List.of(new Segment.Gpu(0,
            5 * MS)));
        final Task holds = new Task("holds", 1, 0, 100 * MS, 100 * MS, 0, 0, 59, 59, false, List.of(
            new Segment.Gpu(2 * MS, MS)));
        final Task waits = new Task("waits", 2, 0, 200 * MS, 200 * MS, 0, 0, 58, 58, false, List.of(new Segment.Gpu(0,
            MS)));
        final TaskSet set = new TaskSet("spins", new Platform(2, List.of(gpu, gpu.withStalls(8 * MS, 90 * MS)), false,
            null), WaitMode.BUSY, List.of(spins, holds, waits));
        final long bound = Analyses.get("gate-busy").analyse(set).tasks().get(2).wcrtNs();
        final Simulator simulator = new Simulator(set);
        long worst = 0;
        for (int seed = 0; seed < 200; seed++) {
            simulator.setFirstArrivals(new long[] {MS, 0, 1});
            simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS).with(SimulationOptions.Scheduler.GATE,
                SimulationOptions.CpuPolicy.FP).withSeed(seed));
            worst = Math.max(worst, simulator.maxResponseNs(2));
        }
        assertTrue(worst > 9 * MS, "more than all windows together: 1 + 3 + 5 ms; " + worst);
        assertTrue(worst <= bound, worst + " above " + bound);
    }
}
