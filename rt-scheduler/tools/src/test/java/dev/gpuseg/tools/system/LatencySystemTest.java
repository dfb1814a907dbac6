/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.SystemRig;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** {@code gpuseg latency --compare} with a real daemon, on a stand-in of the driver. */
@Timeout(300)
@Tag("beside")
class LatencySystemTest {
    private static final int LIMIT_S = 120;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child latency(final String... options) {
        // The stand-in is built by: make -C rt-scheduler/native
        final List<String> command = new ArrayList<>(List.of("env", "GPUSEG_DIR=" + rig.directory().root(),
            "LD_LIBRARY_PATH=" + NativePrograms.named("standin/latency/libcuda.so.1").getParent(),
            NativePrograms.named("gpuseg-latency").toString(), "--compare", "--duration", "300ms"));
        command.addAll(List.of(options));
        return rig.start("latency", command);
    }

    private void gate(final String... options) throws InterruptedException {
        final List<String> command = JavaCommand.daemon(options);
        command.addAll(List.of("--dir", rig.directory().root().toString(), "--policy", "fp", "--mechanism", "gate"));
        command.addAll(rig.settings());
        rig.start("run", command).await("daemon ready", LIMIT_S);
    }

    private long begins() {
        final AtomicLong found = new AtomicLong();
        JournalReader.forEach(rig.directory().journal(),
            event -> found.addAndGet(event.kind() == EventKind.BEGIN ? 1 : 0));
        return found.get();
    }

    @Test
    void shouldMeasureAloneBesideLoadAndAsATaskOfTheDaemon() throws Exception {
        gate();
        final Child latency = latency("--load", "launches", "--priority", "33", "--json");
        assertEquals(0, latency.awaitExit(LIMIT_S), latency.said());
        final JsonNode result = new ObjectMapper().readTree(latency.lastLine());
        assertEquals("mechanism gate, policy fp", result.path("daemon").asText(), latency.said());
        assertEquals(33, result.path("priority").asInt());
        assertEquals(List.of("alone", "driver", "gpuseg"), result.findValuesAsText("name"));
        final JsonNode task = result.path("measurements").get(2);
        assertTrue(task.path("samples").asLong() > 0, latency.said());
        SystemRig.await("every kernel of the task was a segment", 1_000 * LIMIT_S,
            () -> begins() >= task.path("samples").asLong());
    }

    @Test
    void shouldSayBeforeItMeasuresThatTheDaemonRefusesTheTask() throws Exception {
        final Path none = rig.file("none.yaml");
        Files.writeString(none, "version: 1\nid: none\nplatform: {cpus: 1, epsilon: 1ms, theta: 200us}\ntasks:\n"
            + "  - {name: other, cpu: 1, period: 80ms, priority: 70, gpu_priority: 70, segments: "
            + "[{cpu: 2ms}, {gpu: {host: 2ms, device: 4ms}}]}\n");
        gate("--admission", "enforce", "--taskset", none.toString());
        final Child latency = latency("--duration", "3600s");
        assertEquals(1, latency.awaitExit(LIMIT_S), latency.said());
        assertTrue(latency.said().contains("gpuseg latency: --compare: task \"latency\" is not in the task-set file"),
            latency.said());
        assertEquals(1, latency.said().strip().lines().count(), latency.said());
    }

    @Test
    void shouldRefuseADaemonOfAVirtualGpu() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child latency = latency();
        assertEquals(3, latency.awaitExit(LIMIT_S), latency.said());
        assertTrue(latency.said().contains("--compare: the daemon schedules a virtual GPU, not this one"),
            latency.said());
    }
}
