/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.RealTime;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** A boosted task of the C library, a real daemon that admits it, and what the kernel says of its thread. */
@Timeout(120)
@Tag("long")
class BoostSystemTest {
    private static final int RT_PRIORITY = 40;
    private static final int BOOST = 37;
    private static final ObjectMapper JSON = new ObjectMapper();

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** rt_priority, field 40 of stat: 0 for normal threads. The highest of the process's threads. */
    private static int realTimePriority(final long pid) {
        try (Stream<Path> threads = Files.list(Path.of("/proc/" + pid + "/task"))) {
            int highest = 0;
            for (final Path thread : threads.toList()) {
                final String stat = Files.readString(thread.resolve("stat"));
                final String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
                highest = Math.max(highest, Integer.parseInt(fields[RT_PRIORITY - 3]));
            }
            return highest;
        } catch (final IOException e) {
            return -1;   // a thread has ended meanwhile: look again
        }
    }

    @Test
    void shouldAdmitABoostedTaskByTheBoostAnalysisAndRunItsWindowsAtTheCeiling() throws Exception {
        assumeTrue(RealTime.isPermitted(), "SCHED_FIFO is not permitted here; raise RLIMIT_RTPRIO");
        final Path set = Files.writeString(rig.file("set.yaml"), "version: 1\nid: robot\n"
            + "platform: {cpus: 2, epsilon: 1ms}\nmode: suspend\ntasks:\n"
            + "  - {name: camera, cpu: 1, period: 60s, priority: 30, "
            + "segments: [{gpu: {host: 1ms, device: 20s}}, {cpu: 1ms}]}\n");
        rig.gpu();
        rig.daemon("--admission", "enforce", "--taskset", set.toString());
        final Child task = rig.start("camera", List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", "camera", "--priority", "30", "--period", "60s",
            "--segments", "cpu:1ms,gpu:0ms+2s,cpu:60s", "--duration", "60s", "--cpu-mode", "sleep", "--boost",
            Integer.toString(BOOST)));
        SystemRig.await("boosted inside", 20_000, () -> realTimePriority(task.pid()) == BOOST);
        SystemRig.await("normal after the end", 20_000, () -> realTimePriority(task.pid()) == 0
            && "idle".equals(rig.state("camera")));
        final JsonNode status = rig.status();
        assertEquals(BOOST, status.path("tasks").get(0).path("boost").asInt());
        assertEquals("gcaps-boost-tight-suspend", status.path("admission").path("analysis").asText());
        assertTrue(status.path("admission").path("proven").asBoolean());
        final String shown = StringOutput.of("status", "--dir", rig.directory().root().toString()).text();
        assertTrue(shown.contains("BOOST") && shown.contains("   " + BOOST + " "), shown);
        final int[] journaled = new int[1];
        SystemRig.await("journaled", 20_000, () -> {
            JournalReader.forEach(rig.directory().journal(), event -> {
                if (event.kind() == EventKind.TASK_OPEN) {
                    journaled[0] = boostOf(event.text());
                }
            });
            return journaled[0] == BOOST;
        });
    }

    private static int boostOf(final String attributes) {
        try {
            return JSON.readTree(attributes).path("boost").asInt();
        } catch (final IOException e) {
            throw new AssertionError(attributes, e);
        }
    }
}
