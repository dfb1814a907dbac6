/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import java.util.List;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

class TaskSetFormatTest {
    private static TaskSetFormat.Section section(final String title) {
        return TaskSetFormat.sections().stream().filter(s -> s.title().equals(title)).findFirst().orElseThrow();
    }

    @Test
    void shouldDescribeEveryKey() {
        for (final TaskSetFormat.Section section : TaskSetFormat.sections()) {
            assertTrue(section.keys().size() >= 2, section.toString());
            section.keys().forEach((key, text) -> assertTrue(text.length() >= 8, section.title() + ": " + key));
        }
        assertTrue(section("a task").keys().keySet().containsAll(List.of("cpu", "process", "segments", "overload")));
        assertEquals(new TreeSet<>(List.of("cpu", "gpu")), new TreeSet<>(section("a segment").keys().keySet()));
        assertEquals(List.of("host", "device", "total", "bursts"),
            List.copyOf(section("a GPU segment").keys().keySet()));
    }

    @Test
    void shouldGiveAnExampleWhoseDeadlinesHold() throws Exception {
        final String example = TaskSetFormat.example();
        final TaskSet set = new TaskSetReader().readText(example, "example.yaml");
        assertTrue(Analyses.recommended(set.mode()).analyse(set).schedulable());
        assertTrue(set.tasks().stream().anyMatch(task -> task.bestEffort()) && set.tasks().stream()
            .anyMatch(task -> task.gpuSegmentCount() == 0), "one of each kind");
        assertTrue(example.lines().filter(line -> line.contains("# ") || line.startsWith("#")).count() > 10, example);
    }
}
