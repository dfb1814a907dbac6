/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.tools.process.TerminalOutput;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class DemoTextTest {
    private static final long MS = 1_000_000;
    private final DemoText plain = new DemoText(TerminalOutput.PLAIN);
    private List<Task> tasks;

    @BeforeEach
    void read() throws IOException {
        tasks = Workload.named("robot").tasks();
    }

    private List<TaskFigures> figures(final int jobs, final int misses, final long maxNs) {
        final List<TaskFigures> figures = new ArrayList<>();
        for (final Task task : tasks) {
            figures.add(new TaskFigures(task, jobs, task.bestEffort() ? 0 : misses, maxNs / 2, maxNs, maxNs));
        }
        return figures;
    }

    private DemoRun.Result result(final int before, final int after) {
        return new DemoRun.Result(figures(100, before, 40 * MS), figures(100, after, 8 * MS), null, 0, 0);
    }

    @Test
    void shouldSumUpWhatWasMeasured() {
        final String longest = "\nLongest response of obstacle_stop, which has the highest priority: 40.0 ms without, "
            + "8.0 ms with gpuseg.";
        assertEquals("Without gpuseg 150 of 300 deadlines were missed; with gpuseg none was missed." + longest,
            plain.sentence(result(50, 0), "fp"));
        assertEquals("Without gpuseg no deadline was missed; with gpuseg none was missed." + longest,
            plain.sentence(result(0, 0), "fp"));
        final String missed = plain.sentence(result(50, 1), "fp");
        assertTrue(missed.startsWith("Without gpuseg 150 of 300 deadlines were missed; with gpuseg 3 of 300 were "
            + "missed.") && missed.contains("idle machine"), missed);
    }

    @Test
    void shouldColourMissesRedAndTheirAbsenceGreen() {
        final DemoText coloured = new DemoText(new TerminalOutput(true, true));
        final List<String> table = coloured.table(result(50, 0), "fp");
        assertTrue(table.get(2).contains("\033[1;31m    50\033[0m") && table.get(2).contains("\033[32m     0\033[0m"),
            table.get(2));
        final List<String> without = plain.table(result(50, 0), "fp");
        assertEquals(without, table.stream().map(line -> line.replaceAll("\033\\[[0-9;]*m", "")).toList());
        final String bestEffort = without.get(without.size() - 1);
        assertTrue(bestEffort.startsWith("language_model") && bestEffort.contains("none |   100      - "), bestEffort);
    }

    @Test
    void shouldFitTheLiveLineIntoEightyColumns() {
        for (int number = 1; number <= 2; number++) {
            final String line = plain.live(new DemoProgress.Phase(number, "fp", 3600_000 * MS, 1800_000 * MS, 99_999,
                99_999));
            assertTrue(line.length() < 80, line);
        }
        assertEquals("without gpuseg [######..................]  2.5 s  jobs   12  missed 3",
            plain.live(new DemoProgress.Phase(1, "rr", 2500 * MS, 10_000 * MS, 12, 3)));
    }
}
