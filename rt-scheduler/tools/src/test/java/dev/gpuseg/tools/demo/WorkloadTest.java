/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.rig.StringOutput;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

@Timeout(60)
@Tag("long")
class WorkloadTest {
    @TempDir
    private Path directory;

    static java.util.List<String> names() throws IOException {
        return Workload.names();
    }

    @Test
    void shouldShipTheOnesThatTheReadmeNames() throws IOException {
        assertEquals("[adversary, amr-orin, autoware, av-bevfusion, disb-a, disb-b, disb-c, disb-d, disb-e, disb-real, "
            + "gcaps-xavier, manipulation, robot]", Workload.names().toString());
    }

    @ParameterizedTest
    @MethodSource("names")
    void shouldBePlayableAndAnalysable(final String name) throws Exception {
        final Workload workload = Workload.named(name);
        assertEquals(name, workload.set().id());
        assertTrue(workload.tasks().stream().anyMatch(task -> !task.bestEffort()), "something must hold its deadline");
        for (final Task task : workload.tasks()) {
            assertTrue(Workload.segments(task).matches("((cpu:\\d+us|gpu:\\d+us\\+\\d+us)(,|$))+"), task.toString());
        }
        final Path file = Path.of(System.getProperty("gpuseg.root"), "traces", "workloads", name + ".yaml");
        final String text = Files.readString(file);
        assertTrue(text.startsWith("# "), "sources and assumptions stand first");
        final StringOutput analysis =
            StringOutput.of("analyze", file.toString(), "--analysis", "gcaps-window-suspend", "--format", "json");
        assertTrue(analysis.status() == ExitCode.OK || analysis.status() == ExitCode.NO, analysis.text());
        final JsonNode tasks = new ObjectMapper().readTree(analysis.out()).path("results").path("gcaps-window-suspend")
            .path("tasks");
        assertEquals(workload.tasks().size(), tasks.size());
    }

    @Test
    void shouldPlayAnother() throws Exception {
        final StringOutput demo = StringOutput.of("demo", "--workload", "adversary", "--duration", "1s", "--json",
            "--out", directory.resolve("out").toString());
        assertEquals(ExitCode.OK, demo.status(), demo.text());
        final JsonNode result = new ObjectMapper().readTree(demo.out());
        assertEquals("emergency_stop", result.path("tasks").get(0).path("name").asText());
        assertEquals(50, result.path("tasks").get(0).path("jobs").asInt());
    }

    @Test
    void shouldNameWhatThereIsWhereTheNameIsUnknown() {
        final StringOutput unknown = StringOutput.of("demo", "--workload", "nothing");
        assertEquals(ExitCode.USAGE, unknown.status());
        assertTrue(unknown.text().contains("\"nothing\"") && unknown.text().contains("gcaps-xavier"), unknown.text());
    }

    @Test
    void shouldRefuseATaskWithoutPriority() throws IOException {
        final Path file = directory.resolve("set.yaml");
        Files.writeString(file, """
            version: 1
            id: x
            platform: {cpus: 1, epsilon: 1ms}
            tasks:
              - {name: a, cpu: 1, period: 10ms, segments: [{cpu: 1ms}]}
            """);
        final String message = assertThrows(IllegalArgumentException.class, () -> Workload.named(file.toString()))
            .getMessage();
        assertTrue(message.contains("\"a\"") && message.contains("no priority"), message);
        assertFalse(message.contains("\n"));
    }
}
