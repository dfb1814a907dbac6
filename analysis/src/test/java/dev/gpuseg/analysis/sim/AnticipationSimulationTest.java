/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import static dev.gpuseg.analysis.sim.Sets.MS;
import static dev.gpuseg.analysis.sim.Sets.gpu;
import static dev.gpuseg.analysis.sim.Sets.set;
import static dev.gpuseg.analysis.sim.Sets.task;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.SimulationOptions.Arrivals;
import dev.gpuseg.analysis.sim.SimulationOptions.Execution;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Jitter;
import dev.gpuseg.analysis.sim.SimulationOptions.Offsets;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.core.Anticipator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What anticipation does to a real-time task where updates take epsilon: theorem 14 and lemma 15 of window.md. */
class AnticipationSimulationTest {
    private static final double EPSILON_MS = 1;
    private static final long EPSILON_NS = MS;
    private static final long DURATION_NS = 4_000 * MS;
    private static final int LEARNED_AFTER = 20;
    private static final int SEEDS = 50;
    private static final int BUDGET = 50_000;

    private static TaskSet loop(final long jitterNs) {
        final Task loop = new Task("loop", 1, 0, 20 * MS, 20 * MS, jitterNs, 0, 50, 50, false, List.of(gpu(0, 2)));
        return set(WaitMode.SUSPEND, 2, EPSILON_MS, loop, task("back", 2, 0, 100, gpu(0, 90)));
    }

    /** Looks at nothing; what is looked at is overridden. */
    private static class Unseen implements TraceSink {
        @Override
        public void onCpu(final int cpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            // not looked at
        }

        @Override
        public void onGpu(final int gpu, final int task, final Activity activity, final long fromNs, final long toNs) {
            // not looked at
        }

        @Override
        public void onSegment(final int gpu, final int task, final Activity activity, final long fromNs,
            final long toNs) {
            // not looked at
        }

        @Override
        public void onJob(final int task, final long arrivalNs, final long endNs, final boolean missed) {
            // not looked at
        }
    }

    /** The responses of the first task by the arrival of the job. */
    private static Map<Long, Long> responses(final TaskSet set, final SimulationOptions options) {
        final Map<Long, Long> responses = new TreeMap<>();
        new Simulator(set).run(options, new Unseen() {
            @Override
            public void onJob(final int task, final long arrivalNs, final long endNs, final boolean missed) {
                if (task == 0) {
                    responses.put(arrivalNs, endNs - arrivalNs);
                }
            }
        });
        return responses;
    }

    private static SimulationOptions options(final boolean optimistic, final Arrivals arrivals, final long seed) {
        return SimulationOptions.ofDurationNs(DURATION_NS).with(Hold.WINDOW, optimistic, Update.STALL)
            .with(arrivals, Offsets.RANDOM, Execution.WORST, Jitter.RANDOM).withSeed(seed);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void shouldSpareAPeriodicTaskTheUpdateAtItsBegin(final boolean optimistic) {
        final SimulationOptions without = options(optimistic, Arrivals.PERIODIC, 2);
        final Map<Long, Long> before = responses(loop(0), without);
        final Map<Long, Long> after = responses(loop(0), without.anticipating(BUDGET));
        assertEquals(before.keySet(), after.keySet());
        before.forEach((arrivalNs, response) -> assertTrue(after.get(arrivalNs) <= response, "job of " + arrivalNs));
        int job = 0;
        for (final Map.Entry<Long, Long> one : after.entrySet()) {
            assertTrue(job++ < LEARNED_AFTER || one.getValue() == 2 * MS, one.toString());
        }
        assertTrue(before.values().stream().filter(response -> response >= 2 * MS + EPSILON_NS).count() > job / 2);
    }

    /** With begins that scatter an update for a begin that did not come can be in progress. */
    @Test
    void shouldDelayNoBeginByMoreThanOneUpdate() {
        long gained = 0;
        int later = 0;
        int jobs = 0;
        for (int seed = 0; seed < SEEDS; seed++) {
            for (final Arrivals arrivals : Arrivals.values()) {
                final SimulationOptions without = options((seed & 1) == 0, arrivals, seed);
                final TaskSet set = loop(seed % 5 * MS);
                final Map<Long, Long> before = responses(set, without);
                final Map<Long, Long> after = responses(set, without.anticipating(Anticipator.PPM));
                assertEquals(before.keySet(), after.keySet());
                for (final Map.Entry<Long, Long> one : before.entrySet()) {
                    final long response = after.get(one.getKey());
                    assertTrue(response <= one.getValue() + EPSILON_NS, () -> "job of " + one.getKey() + ": " + response
                        + " ns instead of " + one.getValue());
                    gained += one.getValue() - response;
                    later += response > one.getValue() ? 1 : 0;
                    jobs++;
                }
            }
        }
        assertTrue(gained > 0, "gained " + gained + " ns");
        assertTrue(later < jobs / 20, later + " of " + jobs + " jobs later than without");
    }

    /** For how long the second task has the GPU; what is left of its jobs is done later. */
    private static long bestEffortNs(final TaskSet set, final SimulationOptions options) {
        final long[] ns = new long[1];
        new Simulator(set).run(options, new Unseen() {
            @Override
            public void onGpu(final int gpu, final int task, final Activity activity, final long fromNs,
                final long toNs) {
                ns[0] += task == 1 ? Math.min(toNs, DURATION_NS) - Math.min(fromNs, DURATION_NS) : 0;
            }
        });
        return ns[0];
    }

    /** 5 ms at 30 Hz with updates as on an H200: what best-effort work has is what counts, not all of the time. */
    @ParameterizedTest
    @ValueSource(longs = {0, 1, 4, 8})
    void shouldLeaveBestEffortWorkItsPartWhereBeginsScatter(final long jitterMs) {
        final long periodNs = 33_333_333;
        final Task loop = new Task("loop", 1, 0, periodNs, periodNs, jitterMs * MS, 0, 50, 50, false,
            List.of(gpu(0, 5)));
        final TaskSet set = set(WaitMode.SUSPEND, 2, 0.7, loop, task("back", 2, 0, 100, gpu(0, 99)));
        for (int seed = 0; seed < 5; seed++) {
            final SimulationOptions without = options(true, Arrivals.PERIODIC, seed);
            final long before = bestEffortNs(set, without);
            final long after = bestEffortNs(set, without.anticipating(BUDGET));
            assertTrue(after * 100 >= before * 95, "jitter of " + jitterMs + " ms: " + after + " of " + before + " ns");
        }
    }

    @Test
    void shouldLeaveRunsAsTheyWereWithoutIt() {
        final Simulator simulator = new Simulator(loop(0));
        simulator.execute(options(true, Arrivals.PERIODIC, 1));
        assertEquals(0, simulator.anticipated());
        simulator.execute(options(true, Arrivals.PERIODIC, 1).anticipating(BUDGET));
        assertTrue(simulator.anticipated() > 0);
        simulator.execute(options(true, Arrivals.PERIODIC, 1));
        assertEquals(0, simulator.anticipated());
    }

    @Test
    void shouldRefuseABudgetThatIsNoShare() {
        assertThrows(IllegalArgumentException.class, () -> options(true, Arrivals.PERIODIC, 1).anticipating(-1));
    }
}
