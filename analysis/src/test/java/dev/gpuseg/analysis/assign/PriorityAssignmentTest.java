/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.assign;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.GpuPrioritySearch;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import org.junit.jupiter.api.Test;

class PriorityAssignmentTest {
    private static Task task(final String name, final long period, final long deadline, final boolean bestEffort) {
        return new Task(name, 1, 0, period, deadline, 0, 0, 0, 0, bestEffort, List.of(new Segment.Cpu(1)));
    }

    private static TaskSet set(final List<Task> tasks) {
        return new TaskSet("s", new Platform(1, List.of(), false, null), WaitMode.SUSPEND, tasks);
    }

    @Test
    void shouldRefuseMoreTasksThanPriorities() {
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            tasks.add(task("t" + i, 1000, 1000, false));
        }
        assertThrows(InvalidModelException.class,
            () -> PriorityAssignment.RM.assign(set(tasks), Analyses.get("gcaps-suspend")));
        assertThrows(IllegalArgumentException.class, () -> PriorityAssignment.of("edf"));
    }

    @Test
    void shouldOrderByPeriodOrDeadlineWithTiesInFileOrder() {
        final TaskSet set = set(List.of(task("a", 50, 50, false), task("b", 40, 40, false), task("be", 1, 1, true),
            task("c", 40, 30, false), task("d", 60, 10, false)));
        final Analysis analysis = Analyses.get("gcaps-suspend");
        assertEquals(List.of(97, 99, 0, 98, 96), PriorityAssignment.of("rm").assign(set, analysis).tasks().stream()
            .map(Task::priority).toList());
        assertEquals(List.of(96, 97, 0, 98, 99), PriorityAssignment.of("dm").assign(set, analysis).tasks().stream()
            .map(Task::priority).toList());
    }

    /** One core: quick (period 10) delays the camera (period 20), unless the camera goes first. */
    private static TaskSet withChain(final String reaction) throws Exception {
        return new TaskSetReader().readText("""
            id: chain
            platform: {cpus: 2}
            tasks:
              - {name: quick, cpu: 1, period: 10ms, segments: [{cpu: 4ms}]}
              - {name: camera, cpu: 1, period: 20ms, max_period: 20ms, segments: [{cpu: 3ms}]}
              - {name: brake, cpu: 2, period: 20ms, max_period: 20ms, segments: [{cpu: 1ms}]}
            chains:
              - {name: stop, tasks: [camera, brake], reaction: %s}
            """.formatted(reaction), "set.yaml");
    }

    @Test
    void shouldLookForAnOrderThatKeepsTheLimitsOfChains() throws Exception {
        final Analysis analysis = Analyses.get("gcaps-window-suspend");
        final TaskSet tight = withChain("44ms");
        assertFalse(analysis.analyse(PriorityAssignment.DM.assign(tight, analysis)).schedulable(), "48 ms");
        for (final PriorityAssignment search : List.of(PriorityAssignment.OPA, PriorityAssignment.AUDSLEY)) {
            final TaskSet found = search.assign(tight, analysis);
            assertTrue(analysis.analyse(found).schedulable());
            assertTrue(found.tasks().get(1).priority() > found.tasks().get(0).priority());
        }
        final TaskSet relaxed = withChain("48ms");
        assertEquals(PriorityAssignment.DM.assign(relaxed, analysis), PriorityAssignment.OPA.assign(relaxed, analysis),
            "nothing to repair");
        final TaskSet impossible = withChain("43ms");
        assertEquals(PriorityAssignment.DM.assign(impossible, analysis), PriorityAssignment.OPA.assign(impossible,
            analysis), "no order keeps it: monotonic as where a search fails");
    }

    @Property(tries = 300)
    void shouldAssignGpuPrioritiesThatTheAnalysisAccepts(@ForAll final long seed) {
        final TaskSet set = RandomSets.of(seed);
        for (final String name : List.of("gcaps-suspend", "gcaps-busy", "gcaps-window-suspend", "gcaps-boost-busy")) {
            final Analysis analysis = Analyses.get(name);
            final TaskSet monotonic = PriorityAssignment.DM.assign(set, analysis);
            final boolean found = GpuPrioritySearch.isSchedulable(PreparedSet.of(monotonic), analysis,
                GpuPrioritySearch.Strategy.FRONTIER);
            assertEquals(found, analysis.analyse(PriorityAssignment.OPA.assign(set, analysis)).schedulable(), name);
            if (GpuPrioritySearch.isSchedulable(PreparedSet.of(monotonic), analysis,
                GpuPrioritySearch.Strategy.PUBLISHED)) {
                assertTrue(found, name);
            }
        }
    }
}
