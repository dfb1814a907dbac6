/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static dev.gpuseg.analysis.sim.Sets.MS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.Counterexamples;
import dev.gpuseg.analysis.sim.Sets;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.Simulator;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Tasks of one core and one CPU priority, between which SCHED_FIFO goes by the order of waking up. */
class EqualPrioritiesTest {
    private static long bound(final String analysis, final TaskSet set, final int task) {
        return Analyses.get(analysis).analyse(set).tasks().get(task).wcrtNs();
    }

    /** The bound without the tie was 26.7 ms. */
    @Test
    void shouldCoverATiedTaskThatIsQueuedBehindTheBeginOfAWindow() {
        final TaskSet set = Counterexamples.read("cpu-tie");
        final Simulator simulator = new Simulator(set);
        simulator.setFirstArrivals(new long[] {0, 1, 9 * MS + MS / 20});
        simulator.execute(SimulationOptions.ofDurationNs(100 * MS));
        final long seen = simulator.maxResponseNs(2);
        assertTrue(seen > 35 * MS, "the counterexample: " + seen);
        assertTrue(seen <= bound("gcaps-window-suspend", set, 2),
            seen + " > " + bound("gcaps-window-suspend", set, 2));
        final List<Task> apart = new ArrayList<>(set.tasks());
        apart.set(1, apart.get(1).withPriorities(60, 60));
        final long strict = bound("gcaps-window-suspend", set.withTasks(apart), 2);
        assertTrue(strict < seen, "the example would not show the tie: " + strict);
    }

    /** The window of the tied task c is open beside that of h, and its host part stops h. */
    @Test
    void shouldCoverTheHostPartOfATiedTaskOfTheSameGpu() {
        final Task h = Sets.task("h", 1, 50, 1000, Sets.cpu(1), Sets.gpu(1, 4)).withPriorities(50, 60);
        final Task c = Sets.task("c", 1, 50, 1000, Sets.gpu(20, 1)).withPriorities(50, 40);
        final Task lo = Sets.task("lo", 2, 30, 1000, Sets.gpu(0, 5));
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 2, 0, h, c, lo);
        // c begins at 0 and has its host part until 20; h wakes up at 1, is queued behind c
        final TaskSet strict = set.withTasks(List.of(h, c.withPriorities(40, 40), lo));
        assertTrue(bound("gcaps-window-suspend", set, 2) > bound("gcaps-window-suspend", strict, 2));
        long worst = 0;
        for (int offset = 0; offset < 60; offset++) {
            final Simulator simulator = new Simulator(set);
            simulator.setFirstArrivals(new long[] {offset * MS / 2, MS, 2 * MS + offset % 7});
            simulator.execute(SimulationOptions.ofDurationNs(100 * MS));
            worst = Math.max(worst, simulator.maxResponseNs(2));
        }
        assertTrue(worst <= bound("gcaps-window-suspend", set, 2), "seen " + worst);
    }

    /** An instant in which c has the core for its host part, while the GPU that its device part needs is held by h. */
    @Test
    void shouldCountHostAndDevicePartApartWhereATieDestroysTheirOverlap() {
        final Segment overlapping = new Segment.Gpu(10 * MS, 10 * MS, 12 * MS);
        final Task h = Sets.task("h", 1, 50, 1000, Sets.cpu(1), Sets.gpu(1, 4)).withPriorities(50, 60);
        final Task c = Sets.task("c", 1, 50, 1000, overlapping).withPriorities(50, 40);
        final TaskSet tied = Sets.set(WaitMode.SUSPEND, 1, 0, h, c);
        final TaskSet plain = tied.withTasks(List.of(h, c.withSegments(List.of(Sets.gpu(10, 10)))));
        assertEquals(bound("gcaps-window-suspend", plain, 1), bound("gcaps-window-suspend", tied, 1));
    }

    /** A CPU-only task that waits for a declared blocking brings work into the interval of lower ones. */
    @Test
    void shouldCountTheCarryInOfABlockedTask() {
        // hi arrives at 0, waits for 30 ms, and runs 30..50, 60..80 and 120..140; lo arrives at 30 and runs between
        final Task hi = Sets.task("hi", 1, 90, 60, Sets.cpu(20)).withTimes(60 * MS, 0, 30 * MS);
        final Task lo = Sets.task("lo", 1, 50, 200, Sets.cpu(55));
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, hi, lo);
        for (final String analysis : List.of("gcaps-window-suspend", "gcaps-boost-suspend", "gate-suspend")) {
            assertEquals(115 * MS, bound(analysis, set, 1), analysis);
            assertEquals(95 * MS, bound(analysis, set.withTasks(List.of(hi.withTimes(60 * MS, 0, 0), lo)), 1));
        }
    }
}
