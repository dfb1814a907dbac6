/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.ipc.WatchdogPage;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.rig.TaskClient;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Little memory, one processor, and time that passes while nothing runs. */
@Timeout(240)
@Tag("long")
class StarvedMachineTest {
    private static final int LIMIT_MS = 60_000;
    private static final int MIB = 256;
    private static final int CLIENTS = 32;
    private static final int TASKS_EACH = 8;
    private static final int GO_ON_JOBS = 5;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    private Child daemon(final List<String> before) throws InterruptedException {
        final List<String> command = new ArrayList<>(before);
        command.addAll(JavaCommand.daemon("--dir", rig.directory().root().toString(), "--mechanism", "sim", "--policy",
            "fp", "--journal", rig.directory().journal().toString()));
        command.addAll(rig.settings());
        final Child daemon = rig.start("daemon", command);
        daemon.await("ready", 120);
        return daemon;
    }

    private long jobs(final String task) {
        for (final JsonNode node : rig.status().path("tasks")) {
            if (task.equals(node.path("name").asText())) {
                return node.path("jobs").asLong();
            }
        }
        return 0;
    }

    private void goOn(final String task) throws InterruptedException {
        final long before = jobs(task);
        SystemRig.await(task + " goes on", LIMIT_MS, () -> jobs(task) >= before + GO_ON_JOBS);
    }

    /** What is disabled when the daemon is killed is enabled by its watchdog, and the next daemon serves. */
    private void freesWhatItHeldWhenItIsKilled(final Child daemon) throws Exception {
        rig.task("holder", 90, "300s", "gpu:0ms+200ms", "300s");
        SystemRig.await("something is disabled", LIMIT_MS, () -> rig.held() > 0);
        SystemRig.signal(daemon, "KILL");
        SystemRig.await("the watchdog has enabled what was held", LIMIT_MS, () -> rig.held() == 0);
    }

    @Test
    void shouldServeWithin256MebibytesOfMemory() throws Exception {
        final Optional<MemoryGroup> made = MemoryGroup.create("gpuseg-starved-" + ProcessStatus.pid(), MIB);
        assumeTrue(made.isPresent(), "no control group with a limit of memory can be made");
        try (MemoryGroup group = made.get()) {
            servesACrowd(daemonIn(group));
            System.out.println("most memory of daemon and watchdog with " + (CLIENTS * TASKS_EACH + 2) + " tasks: "
                + (group.peakBytes() >> 20) + " MiB");
        }
    }

    private Child daemonIn(final MemoryGroup group) throws InterruptedException {
        rig.gpu();
        return daemon(group.prefix());
    }

    private void servesACrowd(final Child daemon) throws Exception {
        for (int i = 0; i < CLIENTS; i++) {
            final String[] actions = new String[TASKS_EACH + 1];
            for (int k = 0; k < TASKS_EACH; k++) {
                actions[k] = TaskClient.open("t" + k, 0, 0, 0, 0);
            }
            actions[TASKS_EACH] = "pause";
            rig.start("crowd" + i, TaskClient.command(rig, actions));
        }
        rig.task("camera", 60, "20ms", "gpu:1ms+2ms", "200s");
        rig.task("background", 0, "5ms", "gpu:0ms+1ms", "200s");
        SystemRig.await("all tasks are open", LIMIT_MS,
            () -> rig.status().path("tasks").size() == CLIENTS * TASKS_EACH + 2);
        goOn("camera");
        goOn("background");
        assertTrue(daemon.isAlive(), daemon.said());
        freesWhatItHeldWhenItIsKilled(daemon);
    }

    @Test
    void shouldServeOnOneProcessor() throws Exception {
        rig.gpu();
        final Child daemon = daemon(List.of("taskset", "--cpu-list", "0"));
        rig.task("camera", 60, "20ms", "gpu:1ms+2ms", "200s");
        rig.task("background", 0, "5ms", "gpu:0ms+1ms", "200s");
        SystemRig.await("both tasks are open", LIMIT_MS, () -> rig.status().path("tasks").size() == 2);
        goOn("camera");
        goOn("background");
        assertEquals(0, rig.counter("cycle_errors"));
        freesWhatItHeldWhenItIsKilled(daemon);
        final DecisionReplay.Result replayed = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replayed.agrees(), replayed::toString);
    }

    /**
     * As after a suspend to memory, but harder: CLOCK_MONOTONIC, which stands still in a suspend, goes on. The watchdog
     * is the first to run again and finds a daemon that has been silent.
     */
    @Test
    void shouldGoOnAfterEveryProcessStoodStill() throws Exception {
        final Child gpu = rig.gpu();
        final Child daemon = daemon(List.of());
        final Child camera = rig.task("camera", 60, "20ms", "gpu:1ms+2ms", "200s");
        final Child background = rig.task("background", 0, "5ms", "gpu:0ms+1ms", "200s");
        SystemRig.await("both tasks are open", LIMIT_MS, () -> rig.status().path("tasks").size() == 2);
        goOn("camera");
        final Child holder = rig.task("holder", 90, "300s", "gpu:0ms+200s", "300s");
        // not what the camera disables for a moment
        SystemRig.await("the holder has disabled the others", LIMIT_MS,
            () -> "running".equals(rig.state("holder")) && rig.held() > 0);
        final int watchdog = rig.status().path("daemon").path("watchdog_pid").asInt();
        final List<Integer> all = new ArrayList<>();
        for (final Child each : List.of(camera, background, holder, daemon, gpu)) {
            all.add((int) each.pid());
        }
        all.add(watchdog);
        all.forEach(pid -> ProcessStatus.signal(pid, FaultRig.STOP));
        try (WatchdogPage page = WatchdogPage.map(rig.directory().watchdog())) {
            final long before = page.releases();
            TimeUnit.SECONDS.sleep(2);
            for (int i = all.size() - 1; i >= 0; i--) {
                ProcessStatus.signal(all.get(i), FaultRig.CONT);
                if (all.get(i) == gpu.pid()) {
                    SystemRig.await("the watchdog enables what was held, before the daemon runs", LIMIT_MS,
                        () -> page.releases() > before);
                }
            }
        }
        SystemRig.signal(holder, "KILL");
        goOn("camera");
        goOn("background");
        assertTrue(daemon.isAlive() && camera.isAlive() && background.isAlive(), daemon.said());
        assertEquals(0, rig.counter("cycle_errors"));
        assertEquals(0, rig.counter("poisoned"));
        assertEquals(0, rig.status().path("daemon").path("journal_lost").asLong());
        SystemRig.await("nothing stays disabled", LIMIT_MS, () -> rig.held() == 0);
    }
}
