/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import static dev.gpuseg.analysis.sim.Sets.MS;
import static dev.gpuseg.analysis.sim.Sets.cpu;
import static dev.gpuseg.analysis.sim.Sets.gpu;
import static dev.gpuseg.analysis.sim.Sets.onGpu;
import static dev.gpuseg.analysis.sim.Sets.set;
import static dev.gpuseg.analysis.sim.Sets.task;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.HostWork;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class SimulatorTest {
    private static final SimulationOptions ONCE = SimulationOptions.ofDurationNs(MS);

    private static List<Long> responsesMs(final Simulator simulator, final SimulationOptions options) {
        return simulator.run(options, null).tasks().stream().map(t -> t.maxResponseNs() / MS).toList();
    }

    private static void assertResponsesMs(final TaskSet set, final SimulationOptions options, final Long... expected) {
        assertEquals(List.of(expected), responsesMs(new Simulator(set), options));
    }

    @Test
    void shouldFindTheCriticalInstantOfTheTextbook() {
        final TaskSet set = set(WaitMode.SUSPEND, 1, 0, task("a", 1, 4, 4, cpu(1)), task("b", 1, 3, 5, cpu(1)),
            task("c", 1, 2, 9, cpu(3)), task("d", 1, 1, 18, cpu(3)));
        assertResponsesMs(set, SimulationOptions.ofDurationNs(180 * MS), 1L, 2L, 7L, 18L);
    }

    /** lo had to wait for 20 ms: the idle part ran on the core, as if it were host work. */
    @Test
    void shouldUseNeitherCoreNorGpuInTheIdlePartOfAWindow() {
        assertResponsesMs(Counterexamples.read("idle-in-window"), ONCE, 21L, 7L);
        final TaskSet busy = Counterexamples.read("idle-in-window").withMode(WaitMode.BUSY);
        assertResponsesMs(busy, ONCE, 21L, 26L);
    }

    @Test
    void shouldShortenEveryPartOfAWindowThatIsLongerThanItsParts() {
        final TaskSet set = Counterexamples.read("idle-in-window");
        final Simulator simulator = new Simulator(set);
        boolean shorter = false;
        for (int seed = 0; seed < 50; seed++) {
            for (final Hold hold : Hold.values()) {
                if (hold == Hold.TURNS) {
                    continue;   // nothing holds the GPU, and the set states no turns
                }
                simulator.execute(new SimulationOptions(Scheduler.FP, CpuPolicy.FP, hold, false, false, Update.STALL,
                    Arrivals.PERIODIC, Offsets.SYNCHRONOUS, Execution.RANDOM, Jitter.NONE, HostWork.ANYWHERE,
                    300 * MS, seed));
                assertTrue(simulator.maxResponseNs(0) <= 21 * MS, "seed " + seed);
                shorter |= simulator.maxResponseNs(0) < 21 * MS;
            }
        }
        assertTrue(shorter);
    }

    /** h: device part 0..5, then its host work of 4; c, above it, arrives at 2 and runs 2..8; the window ends at 12. */
    @Test
    void shouldPlaceHostWorkBeforeAndAfterTheDevicePart() {
        final Simulator simulator = new Simulator(set(WaitMode.SUSPEND, 1, 0, task("c", 1, 9, 100, cpu(6)),
            task("h", 1, 5, 100, gpu(4, 5))));
        simulator.setFirstArrivals(new long[] {2 * MS, 0});
        final List<Long> seen = new ArrayList<>();
        for (int seed = 0; seed < 40; seed++) {
            seen.add(responsesMs(simulator, SimulationOptions.ofDurationNs(3 * MS).withSeed(seed)
                .with(HostWork.ANYWHERE)).get(1));
        }
        assertTrue(seen.contains(12L), "all of it after: " + seen);
        assertTrue(seen.contains(15L), "all of it before: 0..2, 8..10, device part until 15: " + seen);
        assertEquals(List.of(6L, 15L), responsesMs(simulator, SimulationOptions.ofDurationNs(3 * MS)));
    }

    /** low begins at 0 and high just after; they share a context, so high waits until low ends at 41. */
    @Test
    void shouldNotPreemptATaskForAnotherOneOfItsProcess() {
        final TaskSet shared = Counterexamples.read("shared-process");
        final Simulator simulator = new Simulator(shared);
        simulator.setFirstArrivals(new long[] {MS, 0});
        simulator.execute(SimulationOptions.ofDurationNs(2 * MS));
        assertTrue(simulator.maxResponseNs(0) > 40 * MS, "high: " + simulator.maxResponseNs(0));
        final Simulator apart = new Simulator(shared.withTasks(shared.tasks().stream()
            .map(task -> task.inProcess(null)).toList()));
        apart.setFirstArrivals(new long[] {MS, 0});
        apart.execute(SimulationOptions.ofDurationNs(2 * MS));
        assertTrue(apart.maxResponseNs(0) < 10 * MS, "high: " + apart.maxResponseNs(0));
    }

    /** SCHED_FIFO: a thread that wakes up goes to the tail of its priority, one that is preempted stays at the head. */
    @Test
    void shouldQueueThreadsOfOnePriorityInTheOrderInWhichTheyWakeUp() {
        // a: 0..2, then its device part until 4; b: from 2, preempted by top at 3, 4..9; a wakes up at 4, ends at 9
        final Simulator simulator = new Simulator(set(WaitMode.SUSPEND, 1, 0, task("a", 1, 5, 100, cpu(1), gpu(1, 2)),
            task("b", 1, 5, 100, cpu(6)), task("top", 1, 9, 100, cpu(1))));
        simulator.setFirstArrivals(new long[] {0, MS, 3 * MS});
        assertEquals(List.of(9L, 8L, 1L), responsesMs(simulator, SimulationOptions.ofDurationNs(4 * MS)));
    }

    @Test
    void shouldPreemptTheDevicePartAndPayEpsilonTwice() {
        // lo: begin at 0, update until 1, device from 1; hi arrives at 3 (cpu 3): update 3..4, device 4..8, end, update
        // 8..9, then the 8 ms that lo has left
        final TaskSet set = set(WaitMode.SUSPEND, 2, 1, task("hi", 1, 2, 100, cpu(3), gpu(0, 4)),
            task("lo", 2, 1, 100, gpu(0, 10)));
        assertResponsesMs(set, ONCE, 8L, 17L);
    }

    @Test
    void shouldUpdateForAHigherTaskOnlyWhereItWouldBeTakenOff() {
        // lo begins at 0: with all others off, its device part waits while hi is disabled (0..1); if hi stays on,
        // hi stays on, and no update is needed
        final Simulator simulator = new Simulator(set(WaitMode.SUSPEND, 2, 1, task("hi", 1, 2, 100, cpu(50), gpu(0, 4)),
            task("lo", 2, 1, 100, gpu(0, 10))));
        final SimulationOptions options = ONCE.with(Hold.WINDOW, true, Update.STALL);
        final SimulationResult ready = simulator.run(options, null);
        final SimulationResult off = simulator.run(options.keepingReady(false), null);
        assertEquals(List.of(10 * MS, 11 * MS), List.of(ready.tasks().get(1).maxResponseNs(),
            off.tasks().get(1).maxResponseNs()));
        assertTrue(ready.updates() < off.updates(), ready.updates() + " and " + off.updates());
    }

    @Test
    void shouldNotPreemptThroughTheGate() {
        final TaskSet set = set(WaitMode.SUSPEND, 2, 1, task("hi", 1, 2, 100, cpu(3), gpu(0, 4)),
            task("lo", 2, 1, 100, gpu(0, 10)));
        assertResponsesMs(set, ONCE.with(Scheduler.GATE, CpuPolicy.FP), 14L, 10L);
    }

    @Test
    void shouldLetTheEarlierDeadlineGoFirstUnderEdfWhateverThePriorities() {
        final TaskSet set = set(WaitMode.SUSPEND, 2, 1, task("late", 1, 2, 100, cpu(3), gpu(0, 4)),
            task("soon", 2, 1, 50, gpu(0, 10)));
        assertResponsesMs(set, ONCE.with(Scheduler.EDF, CpuPolicy.EDF), 16L, 11L);
    }

    @Test
    void shouldShareTheGpuInSlicesAndPayForEachSwitch() {
        final Gpu gpu = new Gpu(MS, 0, MS / 2, 2 * MS);
        final TaskSet set = new TaskSet("rr", Platform.of(2, gpu), WaitMode.SUSPEND,
            List.of(task("a", 1, 2, 100, gpu(0, 4)), task("b", 2, 1, 100, gpu(0, 4))));
        // a 0..2, switch, b 2.5..4.5, switch, a 5..7, switch, b 7.5..9.5
        final SimulationResult result = new Simulator(set).run(ONCE.with(Scheduler.RR, CpuPolicy.FP), null);
        assertEquals(7 * MS, result.tasks().get(0).maxResponseNs());
        assertEquals(19 * MS / 2, result.tasks().get(1).maxResponseNs());
        assertEquals(0, result.updates());
    }

    @Test
    void shouldFreeTheCoreWhileSuspendedAndKeepItWhileSpinning() {
        final Task[] tasks = {task("hi", 1, 2, 100, cpu(1), gpu(0, 10), cpu(1)), task("lo", 1, 1, 100, cpu(5))};
        assertResponsesMs(set(WaitMode.SUSPEND, 1, 0, tasks), ONCE, 12L, 6L);
        assertResponsesMs(set(WaitMode.BUSY, 1, 0, tasks), ONCE, 12L, 17L);
    }

    @Test
    void shouldOverlapHostAndDevicePartAsTheTotalSays() {
        final TaskSet set = set(WaitMode.SUSPEND, 1, 0,
            task("a", 1, 1, 100, new Segment.Gpu(4 * MS, 6 * MS, 8 * MS)));
        assertResponsesMs(set, ONCE, 8L);
    }

    @Test
    void shouldNotDelayAnOptimisticBeginByEpsilon() {
        final TaskSet set = set(WaitMode.SUSPEND, 2, 3, task("a", 1, 1, 100, gpu(5, 4)), task("b", 2, 0, 100, gpu(0,
            1)));
        final SimulationOptions late = ONCE;
        // b (best effort) begins too and is pending; the update runs beside the host part of a
        assertEquals(12, responsesMs(new Simulator(set), late).get(0));
        assertEquals(9, responsesMs(new Simulator(set), late.with(Hold.WINDOW, true, Update.STALL)).get(0));
    }

    /** The counterexample to the published bound: hc arrives at 2, h at 0, lo at 1 ms. */
    @Test
    void shouldHoldTheGpuWhileTheHostPartOfTheHolderIsPreempted() {
        final SimulationOptions options = SimulationOptions.ofDurationNs(3 * MS);
        final Simulator simulator = windowGap();
        assertEquals(List.of(30L, 41L, 50L), responsesMs(simulator, options));
        assertTrue(simulator.anyRealTimeMiss());
        assertEquals(List.of(34L, 11L, 20L), responsesMs(simulator, options.with(Hold.BOOST, false, Update.STALL)));
        assertEquals(List.of(30L, 41L, 11L), responsesMs(simulator, options.with(Hold.ABSTRACT, false, Update.STALL)));
    }

    /** low loses the GPU to high at 1 ms, in the middle of its host part; its core's urgent task arrives at 2 ms. */
    @Test
    void shouldKeepACeilingWhileAnotherWindowHasTheGpu() {
        final TaskSet set = set(WaitMode.SUSPEND, 2, 0, task("urgent", 1, 3, 100, new Segment.Cpu(2 * MS)),
            task("high", 2, 2, 100, gpu(0, 20)), task("low", 1, 1, 100, gpu(10, 1)));
        final SimulationOptions options = SimulationOptions.ofDurationNs(3 * MS);
        final Simulator simulator = new Simulator(set);
        simulator.setFirstArrivals(new long[] {2 * MS, MS, 0});
        assertEquals(List.of(2L, 20L, 22L), responsesMs(simulator, options.with(Hold.BOOST, false, Update.STALL)));
        assertEquals(List.of(10L, 20L, 22L), responsesMs(simulator, options.with(Hold.CEILING, false, Update.STALL)));
        assertEquals(List.of(34L, 11L, 20L), responsesMs(windowGap(),
            SimulationOptions.ofDurationNs(3 * MS).with(Hold.CEILING, false, Update.STALL)));
    }

    private static Simulator windowGap() {
        final Simulator simulator = new Simulator(Sets.windowGap());
        simulator.setFirstArrivals(new long[] {2 * MS, 0, MS});
        return simulator;
    }

    @Test
    void shouldServeSeveralGpusApart() {
        final TaskSet set = new TaskSet("two", new Platform(2, List.of(Gpu.ofEpsilon(MS), Gpu.ofEpsilon(MS)), false,
            null),
            WaitMode.SUSPEND, List.of(onGpu(task("a", 1, 2, 100, gpu(0, 10)), 0), onGpu(task("b", 2, 1, 100, gpu(0,
            10)), 1)));
        assertResponsesMs(set, ONCE, 10L, 10L);
    }

    @Test
    void shouldRunBestEffortSegmentsOnlyWhileNoRealTimeSegmentIsBegun() {
        final TaskSet set = set(WaitMode.SUSPEND, 2, 0, task("rt", 1, 5, 20, gpu(1, 9)), task("be", 2, 0, 100, gpu(0,
            15)));
        assertResponsesMs(set, SimulationOptions.ofDurationNs(20 * MS), 10L, 25L);
    }

    @Test
    void shouldGiveTheSameRunForTheSameSeed() {
        final SimulationOptions options = SimulationOptions.ofDurationNs(1000 * MS).with(Arrivals.SPORADIC,
            Offsets.RANDOM,
            Execution.RANDOM, Jitter.RANDOM).withSeed(42);
        final List<String> first = new ArrayList<>();
        final List<String> second = new ArrayList<>();
        final Simulator simulator = new Simulator(Sets.windowGap());
        final SimulationResult a = simulator.run(options, new TextTrace(first));
        final SimulationResult b = simulator.run(options, new TextTrace(second));
        assertEquals(a, b);
        assertEquals(first, second);
        assertFalse(first.isEmpty());
        assertFalse(a.equals(simulator.run(options.withSeed(43), null)));
    }

    @Test
    void shouldReportAnOverloadedTaskAsMissed() {
        final TaskSet set = set(WaitMode.SUSPEND, 1, 0, task("a", 1, 2, 10, cpu(6)), task("b", 1, 1, 10, cpu(6)));
        final SimulationResult result = new Simulator(set).run(SimulationOptions.ofDurationNs(100 * MS), null);
        assertEquals(0, result.tasks().get(0).misses());
        assertTrue(result.tasks().get(1).misses() > 5);
    }

    @Test
    void shouldRefuseATaskWithoutPriority() {
        final Task none = new Task("x", 1, 0, MS, MS, 0, 0, 0, 0, false, List.of(cpu(0.1)));
        final Simulator simulator = new Simulator(set(WaitMode.SUSPEND, 1, 0, none));
        assertTrue(assertThrows(InvalidModelException.class, () -> simulator.run(ONCE, null)).getMessage()
            .contains("priority is missing"));
    }

    private record TextTrace(List<String> lines) implements TraceSink {
        @Override
        public void onCpu(final int cpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            lines.add("cpu " + cpu + " " + task + " " + activity + " " + fromNs + " " + toNs);
        }

        @Override
        public void onGpu(final int gpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            lines.add("gpu " + gpu + " " + task + " " + activity + " " + fromNs + " " + toNs);
        }

        @Override
        public void onSegment(final int gpu, final int task, final Activity activity, final long fromNs,
            final long toNs) {
            lines.add("segment " + gpu + " " + task + " " + activity + " " + fromNs + " " + toNs);
        }

        @Override
        public void onJob(final int task, final long arrivalNs, final long endNs, final boolean missed) {
            lines.add("job " + task + " " + arrivalNs + " " + endNs + " " + missed);
        }
    }
}
