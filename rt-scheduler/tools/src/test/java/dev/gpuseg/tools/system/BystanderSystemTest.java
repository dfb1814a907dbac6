/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What segments do to a process without a segment, on the virtual GPU. */
@Timeout(120)
@Tag("long")
class BystanderSystemTest {
    private static final int JOBS = 40;
    private static final ObjectMapper JSON = new ObjectMapper();

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** A process that has no segment for a minute. */
    private void bystander(final int priority) throws InterruptedException {
        rig.start("bystander", List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.directory().root().toString(), "--name", "bystander", "--priority", Integer.toString(priority),
            "--period", "60s", "--segments", "gpu:1ms+1ms", "--offset", "60s", "--duration", "70s", "--cpu-mode",
            "sleep"));
        SystemRig.await("bystander is open", 30_000, () -> !"gone".equals(rig.state("bystander")));
    }

    /** Jobs of three segments back to back; returns how often the bystander was disabled. */
    private long bursts(final int bystanderPriority) throws Exception {
        bystander(bystanderPriority);
        final long context = task("bystander").path("context").asLong();
        final Child camera = rig.task("camera", 50, "25ms", "gpu:0ms+1ms,gpu:0ms+1ms,gpu:0ms+1ms", JOBS * 25 + "ms");
        assertTrue(SystemRig.summary(camera, 60).path("jobs").asLong() > 0);
        SystemRig.await("every context is enabled", 20_000, () -> rig.held() == 0);
        final AtomicLong taken = new AtomicLong();
        final List<String> opened = new ArrayList<>();
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.DISABLE && event.contextId() == context) {
                taken.incrementAndGet();
            } else if (event.kind() == EventKind.TASK_OPEN) {
                opened.add(event.text());
            }
        });
        final JsonNode last = JSON.readTree(opened.get(opened.size() - 1));
        assertEquals("camera", last.path("name").asText());
        return taken.get();
    }

    private JsonNode task(final String name) {
        for (final JsonNode node : rig.status().path("tasks")) {
            if (name.equals(node.path("name").asText())) {
                return node;
            }
        }
        throw new AssertionError("task " + name + " is not open: " + rig.status().path("tasks"));
    }

    @Test
    void shouldDisableABystanderWhileASegmentRuns() throws Exception {
        rig.realTime();
        assertTrue(bursts(0) > 0);
    }

    @Test
    void shouldTakeNobodyOffForATaskOfLowerRank() throws Exception {
        rig.realTime();
        assertEquals(0, bursts(70));
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", rig.directory().root().toString()).status());
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replayed.agrees(), replayed.toString());
    }
}
