/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
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
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.TimePartitions;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Bounds for time partitions (docs/partitions.md) against the simulator, a random table for every set. */
@Timeout(300)
class PartitionSoundnessTest {
    private static final int SETS = 1_500;
    private static final int RUNS = 4;
    private static final long MS = 1_000_000L;
    private static final long SEED = 20_261_121;

    @Test
    void shouldNeverExceedABoundForPartitions() {
        final List<Claim> claims = Claim.partitions();
        final Campaign campaign = new Campaign(claims, k -> CampaignSets.mixed(SEED, k), SEED, RUNS);
        final Map<String, Long> counts = campaign.run(0, SETS);
        for (final Claim claim : claims) {
            assertEquals(0, counts.get("exceeded sets of " + claim.title()), () -> claim.title() + ": "
                + campaign.excesses());
            assertEquals(0, counts.get("missed sets of " + claim.title()), claim.title());
            assertTrue(counts.get("accepted of " + claim.title()) > SETS / 20, () -> claim.title() + counts);
            // a bound that is never nearly reached would not be tested by this
            assertTrue(counts.get("max ppm of " + claim.title()) > 800_000, () -> claim.title() + counts);
        }
    }

    /** The campaign must be able to find what is wrong: a bound that leaves the windows out. */
    @Test
    void shouldFindThatABoundWithoutTheTableIsExceeded() {
        final Claim claim = Claim.partitionsLeftOut();
        final Campaign campaign = new Campaign(List.of(claim), k -> CampaignSets.mixed(SEED, k), SEED, RUNS);
        final long exceeded = campaign.run(0, 100).get("exceeded sets of " + claim.title());
        assertTrue(exceeded > 10, "exceeded: " + exceeded);
    }

    /** Tasks that use no GPU attain their bounds easily: those that do must come near theirs too. */
    @Test
    void shouldComeNearTheBoundsOfTasksThatUseTheGpu() {
        final Claim claim = Claim.partitions().get(0);
        double nearest = 0;
        for (long k = 0; k < 400; k++) {
            final TaskSet set = CampaignSets.generate(SEED, k).withMode(WaitMode.SUSPEND);
            final AnalysisResult result = claim.conflict(set).isEmpty() ? claim.analysisOf(set).analyse(set) : null;
            if (result != null && result.schedulable()) {
                final Simulator simulator = new Simulator(set);
                claim.configure(set, simulator);
                for (int seed = 0; seed < RUNS; seed++) {
                    simulator.execute(SimulationOptions.ofDurationNs(1_000 * MS)
                        .with(Scheduler.PARTITIONS, CpuPolicy.FP).withSeed(seed));
                    for (int i = 0; i < set.tasks().size(); i++) {
                        final Long bound = result.tasks().get(i).wcrtNs();
                        if (bound != null && set.tasks().get(i).gpuSegmentCount() > 0) {
                            nearest = Math.max(nearest, (double) simulator.maxResponseNs(i) / bound);
                        }
                    }
                }
            }
        }
        assertTrue(nearest > 0.6 && nearest <= 1, "nearest " + nearest);
    }

    /** By hand: C 1, G 21, epsilon 1, a window of 12 in each frame of 20. */
    @Test
    void shouldGiveTheBoundCalculatedByHand() {
        final TaskSet set = one();
        final TimePartitions table = new TimePartitions(FixedPriority.INSTANCE, 20 * MS, 3 * MS, 2 * MS, false,
            new TimePartitions.Window(1, 0, 12 * MS));
        final AnalysisResult result = new TimePartitioned(table, task -> 1, false).analyse(set);
        // own 22, updates 2 eps: 24 of open time. Open 12 - guard 2 - 2 eps = 8 of 20: three frames, each with its 12
        // closed first
        assertEquals(24 * MS + 3 * 12 * MS, result.tasks().get(0).wcrtNs());
        assertEquals(3 * 12 * MS, result.tasks().get(0).terms().interleavingNs());
        assertEquals(24 * MS, Analyses.get("gcaps-window-suspend").analyse(set).tasks().get(0).wcrtNs());
        final AnalysisResult elsewhere = new TimePartitioned(table, task -> 2, false).analyse(set);
        assertNull(elsewhere.tasks().get(0).wcrtNs(), "partition 2 has no window");
        final AnalysisResult outside = new TimePartitioned(table, task -> 0, false).analyse(set);
        assertTrue(outside.schedulable(), "8 of 20 less two guards' and updates' time is its own");
    }

    @Test
    void shouldRefuseWhatNothingIsProvenFor() {
        final TimePartitions.Window window = new TimePartitions.Window(1, 0, MS);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new TimePartitioned(new TimePartitions(
            new HighestClassFirst(1), 2 * MS, 0, 0, false, window), task -> 1, false)).getMessage()
            .contains("use inside: fp or edf"));
        final TimePartitions fp = new TimePartitions(FixedPriority.INSTANCE, 2 * MS, 0, 0, false, window);
        assertTrue(assertThrows(IllegalArgumentException.class, () -> new TimePartitioned(fp, task -> 1, true))
            .getMessage().contains("use inside: edf"));
        assertTrue(assertThrows(InvalidModelException.class, () -> new TimePartitioned(fp, task -> 1, false)
            .analyse(one().withMode(WaitMode.BUSY))).getMessage().contains("use mode: suspend"));
        assertTrue(assertThrows(InvalidModelException.class, () -> new TimePartitioned(fp, task -> 256, false)
            .analyse(one())).getMessage().contains("it must be 0..255"));
    }

    private static TaskSet one() {
        final List<Segment> work = List.of(new Segment.Cpu(MS), new Segment.Gpu(MS, 20 * MS, 21 * MS));
        return new TaskSet("one", Platform.of(1, new Gpu(MS, MS, 0, MS)), WaitMode.SUSPEND,
            List.of(new Task("only", 1, 0, 200 * MS, 200 * MS, 0, 0, 50, 50, false, work)));
    }
}
