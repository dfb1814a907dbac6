/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.partition;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class PartitioningTest {
    private static TaskSet set(final WaitMode mode, final long... percent) {
        final List<Task> tasks = new ArrayList<>();
        for (final long p : percent) {
            tasks.add(new Task("t" + tasks.size(), 0, 0, 100, 100, 0, 0, 0, 0, false, List.of(new Segment.Cpu(p))));
        }
        return new TaskSet("s", Platform.of(3, Gpu.ofEpsilon(0)), mode, tasks);
    }

    private static List<Integer> cores(final TaskSet set) {
        return set.tasks().stream().map(Task::cpu).toList();
    }

    @Test
    void shouldRefuseUnknownRules() {
        assertThrows(IllegalArgumentException.class, () -> Partitioning.of("nfd"));
    }

    @Test
    void shouldSpreadOrFillAfterTheRule() {
        final TaskSet set = set(WaitMode.SUSPEND, 20, 60, 50, 30, 40);
        assertEquals(List.of(2, 1, 2, 3, 3), cores(Partitioning.of("wfd").partition(set)));
        assertEquals(List.of(2, 1, 2, 2, 1), cores(Partitioning.FFD.partition(set)));
        assertEquals(List.of(2, 1, 2, 2, 1), cores(Partitioning.BFD.partition(set)));
    }

    @Test
    void shouldPlaceWhatFitsNowhereOnTheLeastLoadedCore() {
        assertEquals(List.of(1, 2, 3, 1), cores(Partitioning.FFD.partition(set(WaitMode.SUSPEND, 90, 90, 90, 90))));
    }

    @Test
    void shouldSpreadGpuTasksOverGpusAndCountSpinningAsCpuLoad() {
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            tasks.add(new Task("g" + i, 0, 0, 100, 100, 0, 0, 0, 0, false, List.of(new Segment.Gpu(1, 60 - i))));
        }
        tasks.add(new Task("c", 0, 0, 100, 100, 0, 0, 0, 0, false, List.of(new Segment.Cpu(30))));
        final TaskSet set = new TaskSet("s", new Platform(2, List.of(Gpu.ofEpsilon(0), Gpu.ofEpsilon(0)), false, null),
            WaitMode.BUSY, tasks);
        final TaskSet placed = Partitioning.WFD.partition(set);
        assertEquals(List.of(0, 1, 1), placed.tasks().subList(0, 3).stream().map(Task::gpu).toList());
        assertEquals(List.of(1, 2, 2, 1), cores(placed));
    }
}
