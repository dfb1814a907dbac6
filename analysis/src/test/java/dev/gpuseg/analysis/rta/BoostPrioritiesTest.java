/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Hypotheses.Finding;
import dev.gpuseg.analysis.rta.Hypotheses.Status;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BoostPrioritiesTest {
    private static final long MS = 1_000_000L;

    private static Task task(final String name, final int cpu, final int priority, final boolean window) {
        final List<Segment> work = window ? List.of(new Segment.Cpu(MS), new Segment.Gpu(MS, MS))
            : List.of(new Segment.Cpu(MS));
        return new Task(name, cpu, 0, 100 * MS, 100 * MS, 0, 0, priority, priority, false, work);
    }

    private static TaskSet set(final Task... tasks) {
        return new TaskSet("s", Platform.of(2, new Gpu(0, 0, 0, MS)), WaitMode.SUSPEND, List.of(tasks));
    }

    private static Finding boost(final TaskSet set) {
        return Hypotheses.of(Analyses.describe("gcaps-boost-tight-suspend"), set, false).stream()
            .filter(f -> f.hypothesis() == Hypothesis.M8).findAny().orElseThrow();
    }

    @Test
    void shouldLieAboveAllPrioritiesOfTheCoreAndInTheirOrder() {
        final TaskSet set = set(task("control", 1, 80, false), task("camera", 1, 70, true), task("lidar", 1, 60, true),
            task("radar", 1, 60, true), task("plan", 2, 50, true));
        final BoostPriorities chosen = BoostPriorities.of(set);
        assertEquals(Map.of("camera", 82, "lidar", 81, "radar", 81, "plan", 51), chosen.byName());
        assertEquals("", chosen.conflict());
        assertEquals(Status.NOT_STATED, boost(set).status());
        assertTrue(boost(set).detail().contains("boost_priority camera 82, lidar 81, radar 81, plan 51"),
            boost(set).detail());
    }

    @Test
    void shouldFailWhereTheCoreHasNoPrioritiesLeft() {
        final TaskSet full = set(task("control", 1, 98, false), task("a", 1, 10, true), task("b", 1, 9, true));
        assertTrue(BoostPriorities.of(full).conflict().contains("core 1 has no priorities left above 98"));
        assertEquals(Status.FAILS, boost(full).status());
        assertEquals(99, BoostPriorities.of(set(task("control", 1, 98, false), task("a", 1, 10, true))).byName()
            .get("a"));
    }
}
