/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.report.WorstCase;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.analysis.rta.TurnSlices;
import dev.gpuseg.analysis.sim.SimulationOptions;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.SimulationOptions.Update;
import dev.gpuseg.analysis.sweep.TurnSets;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.mechanisms.Capabilities;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Random sets of robots, opened and closed through admission, against the analyses and the simulator. */
@Timeout(300)
class TurnSequencesTest {
    private static final long SEED = 20_261_128;
    private static final int SETS = 300;
    private static final int SEQUENCES = 60;
    private static final int STEPS = 12;
    private static final long US = 1_000;
    private static final TurnLimits TURNS = new TurnLimits(100 * US, 1);
    private static final Capabilities LEVEL_3 = new Capabilities(Capabilities.INTERRUPT, 100 * US, 0, 200_000, 0, 64,
        false, "process");
    private static final long[] EPSILON_NS = {3_400 * US, 55_000 * US};
    /** By calls, and by either: two sets have no window, and epsilon is no term of the bounds by turns. */
    private static final String COUNTS = "[166, 0] [298, 298]";

    private static final int TOGETHER = 104;
    private static final long[] UPDATE_NS = {200 * US, 800 * US, 3_400 * US};

    @TempDir
    private Path directory;
    private boolean turns;
    private Map<String, Long> slices = Map.of();
    private int changes;
    private long nowNs;

    private ProvenAdmission admission(final TaskSet set, final String noTurns) {
        return admission(set, FixedPriority.INSTANCE, noTurns);
    }

    private ProvenAdmission admission(final TaskSet set, final Policy policy, final String noTurns) {
        turns = false;
        final ProvenAdmission admission = new ProvenAdmission(AdmissionSettings.of(AdmissionMode.ENFORCE, set, null,
            CoreOrder.FP, 0), policy, LEVEL_3, 1, directory.resolve("admitted.json"), () -> nowNs,
            noTurns);
        admission.control(new TurnsControl() {
            @Override
            public void take(final boolean taken, final Map<String, Long> slicesNs, final String proof) {
                turns = taken;
                slices = slicesNs;
                changes++;
            }

            @Override
            public boolean isInForce() {
                return true;
            }
        });
        return admission;
    }

    private static boolean open(final ProvenAdmission admission, final Task task, final int client) {
        final TaskOpen request = new TaskOpen(1, client, task.name(), task.priority(), task.gpuPriority(), 0, true,
            task.periodNs(), task.deadlineNs(), 0);
        if (admission.refuse(request, new Client(client, 1000 + client, 0, 0, 7, "a", null, null, null)) != null) {
            return false;
        }
        admission.opened(request, client);
        return true;
    }

    private static boolean usesGpu(final Task task) {
        return task.gpuSegmentCount() > 0;
    }

    /** Only the first task with a window keeps it, as turns want it. */
    private static TaskSet alone(final TaskSet set) {
        final List<Task> tasks = new ArrayList<>();
        boolean taken = false;
        for (final Task task : set.tasks()) {
            tasks.add(taken && usesGpu(task) ? task.withSegments(List.<Segment>of(task.segments().get(0))) : task);
            taken |= usesGpu(task);
        }
        return set.withTasks(tasks);
    }

    private static boolean accepts(final String analysis, final TaskSet set) {
        return Analyses.get(analysis).analyse(set).schedulable();
    }

    /** Of 300 sets with one task with windows each. */
    @Test
    void shouldAdmitWhatEitherBoundProves() {
        final int[] calls = new int[EPSILON_NS.length];
        final int[] either = new int[EPSILON_NS.length];
        for (int e = 0; e < EPSILON_NS.length; e++) {
            for (int k = 0; k < SETS; k++) {
                final TaskSet set = alone(TurnSets.robot(SEED, k, EPSILON_NS[e], TURNS));
                final Task task = set.tasks().stream().filter(TurnSequencesTest::usesGpu).findFirst().orElse(null);
                if (task == null) {
                    continue;
                }
                final boolean byCalls = accepts("gcaps-window-suspend", set);
                final boolean byTurns = accepts("turns-suspend", set);
                assertEquals(byCalls, open(admission(set, "no turns"), task, 1), set.id());
                assertEquals(byCalls || byTurns, open(admission(set, ""), task, 1), set.id());
                assertEquals(byTurns, turns, set.id());
                calls[e] += byCalls ? 1 : 0;
                either[e] += byCalls || byTurns ? 1 : 0;
            }
        }
        final String counts = Arrays.toString(calls) + " " + Arrays.toString(either);
        assertEquals(COUNTS, counts, "a change of either bound, or of the sets");
    }

    /**
     * Of the same 300 sets as they are, whose tasks share the GPU by slices: each task is admitted, in whatever order,
     * where theorem 16 accepts all of them, and their slices are those of the whole set.
     */
    @Test
    void shouldAdmitSeveralTasksWhereTurnsProveAllThatTheFileDeclares() {
        int accepted = 0;
        for (int k = 0; k < SETS; k++) {
            final TaskSet set = TurnSets.robot(SEED, k, EPSILON_NS[1], new TurnLimits(100 * US, 1, 0, 0, true));
            final boolean byTurns = accepts("turns-suspend", set);
            accepted += byTurns ? 1 : 0;
            final List<Task> order = new ArrayList<>(set.tasks().stream().filter(TurnSequencesTest::usesGpu).toList());
            if (order.size() < 2) {
                continue;
            }
            Collections.shuffle(order, new Random(k));
            final ProvenAdmission admission = admission(set, new HighestClassFirst(99), "");
            for (int i = 0; i < order.size(); i++) {
                final boolean opened = open(admission, order.get(i), i + 1);
                assertTrue(opened == byTurns || opened && i == 0 && !turns, set.id());
                if (byTurns) {
                    final int at = set.tasks().indexOf(order.get(i));
                    assertEquals(TurnSlices.of(set)[at], slices.get(order.get(i).name()), set.id());
                    assertTrue(turns && admission.status(true, 0).path("proven").asBoolean(), set.id());
                }
            }
        }
        assertEquals(TOGETHER, accepted, "a change of the bound, or of the sets");
    }

    /** What runs, by turns or by calls, is never above what was promised for what is open. */
    @Test
    void shouldKeepWhatItSaidAfterEachOpenAndClose() {
        int byTurns = 0;
        int byCalls = 0;
        for (int k = 0; k < SEQUENCES; k++) {
            final SplittableRandom random = new SplittableRandom(SEED + k);
            final TaskSet drawn = TurnSets.robot(SEED, k, UPDATE_NS[k % UPDATE_NS.length], TURNS);
            final TaskSet set = k % 2 == 0 ? drawn : alone(drawn);
            final ProvenAdmission admission = admission(set, "");
            final List<Task> opened = new ArrayList<>();
            for (int step = 0; step < STEPS; step++) {
                nowNs += random.nextLong(1_000_000_000);
                final Task task = set.tasks().get(random.nextInt(set.tasks().size()));
                if (!usesGpu(task)) {
                    continue;
                }
                if (opened.remove(task)) {
                    admission.closed(1 + set.tasks().indexOf(task), task.name());
                } else if (open(admission, task, 1 + set.tasks().indexOf(task))) {
                    opened.add(task);
                } else {
                    continue;
                }
                final JsonNode status = admission.status(true, 0);
                assertTrue(status.path("proven").asBoolean(), status::toString);
                assertEquals(!opened.isEmpty() && turns ? "turns" : "calls", status.path("begins").asText());
                if (!opened.isEmpty()) {
                    compare(set, opened, status, random.nextLong());
                    byTurns += turns ? 1 : 0;
                    byCalls += turns ? 0 : 1;
                }
            }
        }
        assertTrue(byTurns > 40 && byCalls > 40 && changes > 40, byTurns + " " + byCalls + " " + changes);
    }

    private void compare(final TaskSet file, final List<Task> opened, final JsonNode status, final long seed) {
        final List<Task> tasks = new ArrayList<>(file.tasks().stream().filter(task -> !usesGpu(task)
            || opened.contains(task)).toList());
        final int realTime = tasks.size();
        tasks.add(new Task("be", 1, 0, 100_000 * US, 100_000 * US, 0, 0, 0, 0, true,
            List.of(new Segment.Gpu(0, 90_000 * US))));
        final TaskSet set = file.withTasks(tasks);
        final SimulationOptions usual = SimulationOptions.ofDurationNs(WorstCase.usualDurationNs(set));
        final WorstCase worst = WorstCase.search(set, turns ? usual.with(Scheduler.RR, CpuPolicy.FP).with(Hold.TURNS,
            true, Update.STALL) : usual.with(Hold.WINDOW, true, Update.STALL), 4, seed);
        final JsonNode bounds = status.path("result").findValues("tasks").get(0);
        assertEquals(realTime, bounds.size(), status::toString);
        for (int i = 0; i < realTime; i++) {
            assertEquals(tasks.get(i).name(), bounds.path(i).path("name").asText());
            assertTrue(worst.maxResponseNs().get(i) <= bounds.path(i).path("wcrt_ns").asLong(), set.id() + " "
                + tasks.get(i).name() + " " + worst.maxResponseNs() + " " + bounds);
        }
    }
}
