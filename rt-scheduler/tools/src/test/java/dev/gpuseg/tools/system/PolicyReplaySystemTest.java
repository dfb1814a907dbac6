/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** What a real daemon journals under every policy is enough for the core to decide the same again. */
@Timeout(240)
@Tag("long")
@Tag("beside")
class PolicyReplaySystemTest {
    private static final String PARTITIONS = "version: 1\npolicy: partitions\nframe: 30ms\nguard: 2ms\ninside: edf\n"
        + "lend_idle: true\nwindows: [{partition: 1, offset: 0ms, length: 10ms}, {partition: 2, offset: 12ms, "
        + "length: 10ms}]\n";

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child task(final String name, final String... more) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", name, "--duration", "60s", "--cpu-mode", "sleep"));
        command.addAll(List.of(more));
        return rig.start(name, command);
    }

    private void policy(final String... arguments) throws InterruptedException {
        does("policy", arguments);
    }

    private void does(final String command, final String... arguments) throws InterruptedException {
        final List<String> all = new ArrayList<>(List.of(command, "--dir", rig.directory().root().toString()));
        all.addAll(List.of(arguments));
        final StringOutput done = StringOutput.of(all.toArray(new String[0]));
        assertEquals(ExitCode.OK, done.status(), done.text());
        Thread.sleep(250);
    }

    @Test
    void shouldDecideTheSameAgainAfterEveryChange() throws Exception {
        Files.writeString(rig.file("partitions.yaml"), PARTITIONS);
        Files.writeString(rig.file("classes.yaml"), "policy: classes\nclass_width: 30\n"
            + "tasks: [{task: later, weight: 250, cap: 30ms/100ms, overrun: suspend}]\n"
            + "groups: [{group: 3, weight: 50}]\n");
        rig.gpu();
        final Child daemon = rig.daemon("--policy-file", rig.file("classes.yaml").toString());
        task("light", "--priority", "0", "--period", "60s", "--segments", "gpu:0ms+60s", "--weight", "70");
        task("heavy", "--priority", "0", "--period", "40ms", "--segments", "gpu:1ms+9ms", "--weight", "300");
        task("first", "--priority", "50", "--period", "30ms", "--segments", "gpu:0ms+4ms", "--partition", "1");
        task("second", "--priority", "60", "--period", "45ms", "--segments", "gpu:0ms+7ms", "--partition", "2",
            "--budget", "5ms", "--overrun", "skip-next");
        SystemRig.await("tasks", 20_000, () -> rig.status().path("tasks").size() == 4);
        final Child later = task("later", "--priority", "0", "--period", "20ms", "--segments", "gpu:0ms+6ms");
        SystemRig.await("another", 20_000, () -> rig.status().path("tasks").size() == 5);
        does("set", "light", "--weight", "400", "--cap", "20ms/50ms");
        policy(rig.file("partitions.yaml").toString());
        does("set", "second", "--overrun", "suspend");
        policy("--set", "edf");
        later.close();
        policy("--set", "rr");
        policy("--set", "fp");
        does("set", "second", "--overrun", "demote");
        does("set", "first", "--priority", "80");
        assertEquals(ExitCode.OK, StringOutput.of("stop", "--dir", rig.directory().root().toString()).status());
        SystemRig.awaitEnd(daemon, 20_000);
        final Map<String, Integer> seen = new TreeMap<>();
        JournalReader.forEach(rig.directory().journal(), event ->
            seen.merge(event.kind() == EventKind.POLICY ? event.text().split(" ")[0] : event.kind().name(), 1,
                Integer::sum));
        for (final String kind : List.of("TIMER", "DISABLE", "OVERRUN", "PREEMPT", "STOP", "policy", "group",
            "overrun")) {
            assertTrue(seen.getOrDefault(kind, 0) > 0, kind + ": " + seen);
        }
        final DecisionReplay.Result result = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(result.agrees(), result + " of " + seen);
        assertTrue(result.decisions() > 50, result + " of " + seen);
    }
}
