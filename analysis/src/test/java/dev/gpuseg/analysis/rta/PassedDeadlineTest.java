/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.sim.Sets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** What is known of a task whose recurrence passes its deadline. */
class PassedDeadlineTest {
    private static final long MS = Sets.MS;

    private static TaskResult last(final String analysis, final TaskSet set) {
        final List<TaskResult> tasks = Analyses.get(analysis).analyse(set).tasks();
        return tasks.get(tasks.size() - 1);
    }

    /** w = 9 + ceil(w / 10) 6: 9, 15, 21 passes 20; at 21 it is 27. */
    @Test
    void shouldSayWhatTheRecurrenceWasMadeOfWhenItPassedTheDeadline() {
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("a", 1, 2, 10, Sets.cpu(6)),
            Sets.task("b", 1, 1, 20, Sets.cpu(9)));
        final TaskResult b = last("gcaps-window-suspend", set);
        assertNull(b.wcrtNs());
        assertEquals(new Terms(9 * MS, 0, 18 * MS, 0, 0, 0, 0), b.passed());
        assertNull(Analyses.get("gcaps-window-suspend").analyse(set).tasks().get(0).passed());
    }

    /** The execution alone passes it before any other task counts: the others count all the same. */
    @Test
    void shouldCountEveryPartWhereTheExecutionAlonePassesTheDeadline() {
        final Task b = Sets.task("b", 1, 1, 20, Sets.cpu(12)).withTimes(11 * MS, 2 * MS, 0);
        final TaskSet set = Sets.set(WaitMode.SUSPEND, 1, 0, Sets.task("a", 1, 2, 30, Sets.cpu(6)), b);
        assertEquals(new Terms(12 * MS, 2 * MS, 6 * MS, 0, 0, 0, 0), last("gcaps-window-suspend", set).passed());
    }

    /** The task alone gets more time: then its bound is no less than what was said. */
    @Test
    void shouldNeverSayMoreThanTheBoundThatATaskHasWithALongerDeadline() {
        int compared = 0;
        for (int seed = 0; seed < 400; seed++) {
            final Random random = new Random(seed);
            final List<Task> tasks = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                tasks.add(Sets.task("t" + i, 1 + random.nextInt(2), 9 - i, 20 + random.nextInt(30),
                    Sets.cpu(1 + random.nextInt(6)), Sets.gpu(1, 1 + random.nextInt(6))));
            }
            final Task low = Sets.task("low", 1, 1, 400, Sets.cpu(3), Sets.gpu(1, 1 + random.nextInt(9)));
            for (final String analysis : List.of("gcaps-window-suspend", "gcaps-boost-suspend", "gate-suspend",
                "mpcp-suspend", "edf-fp-suspend")) {
                final TaskResult shortOne = last(analysis, with(tasks, low.withTimes(15 * MS, 0, 0)));
                final TaskResult longOne = last(analysis, with(tasks, low));
                if (shortOne.wcrtNs() == null) {
                    assertNotNull(shortOne.passed(), analysis);
                    assertTrue(shortOne.passed().totalNs() > 15 * MS, analysis);
                }
                // by deadline, another deadline is another order; in mpcp it limits the count of requests
                if (shortOne.passed() != null && longOne.wcrtNs() != null && !analysis.startsWith("edf")
                    && !analysis.startsWith("mpcp")) {
                    assertTrue(shortOne.passed().totalNs() <= longOne.wcrtNs(), () -> analysis + " " + shortOne + " "
                        + longOne);
                    compared++;
                }
            }
        }
        assertTrue(compared > 200, "compared " + compared);
    }

    private static TaskSet with(final List<Task> tasks, final Task low) {
        final List<Task> all = new ArrayList<>(tasks);
        all.add(low);
        return Sets.set(WaitMode.SUSPEND, 2, 0.2, all.toArray(new Task[0]));
    }
}
