/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(240)
@Tag("long")
class DemoTest {
    @TempDir
    private Path directory;

    private int demos;

    @Test
    void shouldMissDeadlinesBeforeAndNoneAfterAndBreakNoInvariant() throws Exception {
        Attempts.of(3, this::demo);
    }

    private String demo() throws Exception {
        final Path out = directory.resolve("out" + demos++);
        final StringOutput demo = StringOutput.of("demo", "--duration", "2s", "--json", "--out", out.toString());
        assertEquals(ExitCode.OK, demo.status(), demo.text());
        final JsonNode result = new ObjectMapper().readTree(demo.out());
        final List<String> keys = new ArrayList<>();
        result.fieldNames().forEachRemaining(keys::add);
        assertEquals(List.of("policy", "mechanism", "duration_s", "tasks", "baseline", "invariants"), keys);
        assertEquals("fp", result.path("policy").asText());
        assertEquals("sim", result.path("mechanism").asText());
        assertEquals(2.0, result.path("duration_s").asDouble());
        assertEquals("{\"overlaps\":0,\"lost_records\":0,\"held_after_stop\":0}", result.path("invariants").toString());
        sameAsTheJournal(result, out);
        final List<Task> tasks = Workload.named(Workload.DEFAULT).tasks();
        assertEquals(5, tasks.size());
        assertEquals(tasks.size(), result.path("tasks").size());
        String worse = null;
        int missedBefore = 0;
        int missedAfter = 0;
        for (int i = 0; i < tasks.size(); i++) {
            final Task task = tasks.get(i);
            final JsonNode after = result.path("tasks").get(i);
            final JsonNode before = result.path("baseline").get(i);
            assertEquals(task.name(), after.path("name").asText());
            assertTrue(after.path("jobs").asInt() >= 2_000_000_000L / task.periodNs(), after.toString());
            if (!task.bestEffort() && task.gpuSegmentCount() > 0) {
                // the median: the longest of few jobs shows what else the machine did
                if (after.path("response_ms").path("p50").asDouble()
                    >= before.path("response_ms").path("p50").asDouble()) {
                    worse = "before " + before + ", after " + after;
                }
            }
            missedBefore += before.path("misses").asInt();
            missedAfter += after.path("misses").asInt();
        }
        assertTrue(missedBefore > 10, "round robin alone misses the camera's next image: " + result);
        return missedAfter == 0 ? worse : missedAfter + " missed with gpuseg: " + result.path("tasks");
    }

    /** The demo counts as every other command does. */
    private static void sameAsTheJournal(final JsonNode result, final Path out) throws Exception {
        final StringOutput stats = StringOutput.of("trace", "stats", out.toString(), "--json");
        assertEquals(ExitCode.OK, stats.status(), stats.text());
        int compared = 0;
        for (final JsonNode row : new ObjectMapper().readTree(stats.out()).path("tasks")) {
            for (final JsonNode task : result.path("rr".equals(row.path("policy").asText()) ? "baseline" : "tasks")) {
                if (task.path("name").equals(row.path("name"))) {
                    compared++;
                    assertEquals(row.path("jobs").asInt(), task.path("jobs").asInt(), row + " against " + task);
                    assertEquals(row.path("misses").asInt(), task.path("misses").asInt(), row + " against " + task);
                    assertEquals(row.path("response_ns").path("max").asLong() / 1e6,
                        task.path("response_ms").path("max").asDouble(), 1e-3, row + " against " + task);
                }
            }
        }
        assertEquals(10, compared, "five tasks, twice");
    }
}
