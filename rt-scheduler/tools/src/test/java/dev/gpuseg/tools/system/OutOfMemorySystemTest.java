/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.jvm.OutOfMemory;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The whole way of a daemon whose memory is exhausted while it holds contexts. */
@Timeout(180)
@Tag("long")
@Tag("beside")
class OutOfMemorySystemTest {
    private static final int LIMIT_MS = 60_000;
    private static final int CLIENTS = 30;
    private static final int TASKS_EACH = 60;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** With a heap that two thousand tasks do not fit into: each takes some 9 KiB. */
    private Child smallDaemon() throws InterruptedException {
        final List<String> command = new ArrayList<>(JavaCommand.daemon("--dir", rig.directory().root().toString(),
            "--mechanism", "sim", "--policy", "fp", "--journal", rig.directory().journal().toString()));
        command.addAll(rig.with("tasks-per-user: 16384").settings());
        command.addAll(command.indexOf("-cp"), List.of("-Xms8m", "-Xmx36m"));
        final Child daemon = rig.start("daemon", command);
        daemon.await("ready", 120);
        return daemon;
    }

    private Child crowd(final int number) {
        final String[] actions = new String[TASKS_EACH + 1];
        for (int k = 0; k < TASKS_EACH; k++) {
            actions[k] = TaskClient.open("t" + k, 0, 0, 0, 0);
        }
        actions[TASKS_EACH] = "pause";
        return rig.start("crowd" + number, TaskClient.command(rig, actions));
    }

    private static boolean isManaged(final SystemRig rig, final String task) {
        return !"gone".equals(rig.state(task));
    }

    @Test
    void shouldEndFreeWhatItHeldAndBeReplaced() throws Exception {
        rig.gpu();
        final Child daemon = smallDaemon();
        final Child background = rig.task("background", 0, "5ms", "gpu:0ms+1ms", "170s");
        SystemRig.await("the background task is open", LIMIT_MS, () -> isManaged(rig, "background"));
        rig.task("holder", 90, "200s", "gpu:0ms+170s", "170s");
        SystemRig.await("something is disabled", LIMIT_MS, () -> rig.held() > 0);
        final List<Child> crowd = new ArrayList<>();
        for (int i = 0; i < CLIENTS && daemon.isAlive(); i++) {
            crowd.add(crowd(i));
            SystemRig.awaitEnd(daemon, 300);
        }
        assertEquals(OutOfMemory.STATUS, daemon.awaitExit(LIMIT_MS / 1000), daemon.said());
        assertTrue(daemon.said().contains("OutOfMemoryError"), daemon.said());
        SystemRig.await("the watchdog has enabled what was held", LIMIT_MS, () -> rig.held() == 0);
        assertTrue(background.isAlive(), background.said());
        for (final Child each : crowd) {
            SystemRig.signal(each, "KILL");
        }
        final Child next = rig.daemon();
        SystemRig.await("the next daemon serves", LIMIT_MS, () -> isManaged(rig, "background"));
        final Child newcomer = rig.task("newcomer", 95, "20ms", "gpu:0ms+1ms", "1s");
        assertTrue(SystemRig.summary(newcomer, 60).path("managed").asBoolean());
        assertTrue(next.isAlive(), next.said());
    }

    @Test
    void shouldBeRestartedByItsUnit() throws Exception {
        final String unit = Files.readString(Path.of(System.getProperty("gpuseg.root"),
            "packaging/debian/gpuseg-daemon.gpuseg.service"));
        assertTrue(unit.contains("\nRestart=on-failure\n"), unit);
        assertTrue(unit.contains("\nExecStopPost=/usr/bin/gpuseg-daemon release\n"), unit);
        assertFalse(unit.lines().filter(line -> line.startsWith("RestartPreventExitStatus="))
            .anyMatch(line -> List.of(line.substring(line.indexOf('=') + 1).split(" "))
                .contains(Integer.toString(OutOfMemory.STATUS))), unit);
    }
}
