/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.StallProbe;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.demo.InvariantCheck;
import dev.gpuseg.tools.faults.OperationLog;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import dev.gpuseg.tools.trace.DecisionReplay;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Real C processes, a real daemon and the virtual GPU. */
@Timeout(240)
class EndToEndTest {
    private static final long WATCHDOG_PERIOD_NS = 100_000_000;
    private static final long BUDGET_NS = 1_500_000_000;
    private static final long UPDATE_NS = 50_000_000;
    private static final int ATTEMPTS = 5;
    private static final int LIMIT_MS = 20_000;
    private static final int SIGKILL = 9;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    @AfterEach
    void shouldDecideTheSameAgainWhenItsJournalIsReplayed() throws Exception {
        final DecisionReplay.Result replay = DecisionReplay.of(Source.open(rig.directory().journal()));
        assertTrue(replay.agrees(), replay::toString);
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.BEGIN || event.kind() == EventKind.END) {
                assertTrue(event.timeNs() >= event.arg0(), () -> "before the client did it: " + event);
            }
        });
    }

    @Test
    void shouldDemoteASegmentThatUsesUpItsBudgetUntilItsEnd() throws Exception {
        rig.gpu();
        rig.daemon();
        Attempts.of(ATTEMPTS, () -> {
            final Map<EventKind, Integer> before = events();
            final String start = Long.toString(System.nanoTime() + 2_000_000_000L);
            final Child greedy = timed("greedy", start, "--priority", "90", "--period", "100ms", "--segments",
                "gpu:0ms+40ms", "--budget", "5ms", "--always-wait");
            final Child modest = timed("modest", start, "--priority", "10", "--period", "50ms", "--segments",
                "gpu:0ms+5ms", "--offset", "20ms");
            assertEquals(10, SystemRig.summary(greedy, 40).path("jobs").asInt());
            assertEquals(20, SystemRig.summary(modest, 40).path("jobs").asInt());
            final Map<EventKind, Integer> count = events();
            before.forEach((kind, n) -> count.merge(kind, -n, Integer::sum));
            assertTrue(count.get(EventKind.OVERRUN) <= 10, "once a segment: " + count);
            return count.get(EventKind.OVERRUN) == 10 && count.getOrDefault(EventKind.RESUME, 0) >= 10 ? null
                : "what was disabled is enabled again, each time: " + count;
        });
        assertEquals(rig.counter("overruns"), events().get(EventKind.OVERRUN).longValue());
    }

    /** A task of one second from a common start on. */
    private Child timed(final String name, final String start, final String... more) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", name, "--start-at", start, "--duration", "1s",
            "--cpu-mode", "sleep"));
        command.addAll(List.of(more));
        return rig.start(name, command);
    }

    private Map<EventKind, Integer> events() {
        final Map<EventKind, Integer> count = new EnumMap<>(EventKind.class);
        JournalReader.forEach(rig.directory().journal(), event -> count.merge(event.kind(), 1, Integer::sum));
        return count;
    }

    /** All daemons write on in one journal: what an attempt adds to it is counted. */
    @Test
    void shouldKeepLowerTasksOffTheGpuWhileAHigherWindowIsOpen() throws Exception {
        final Map<EventKind, Integer> before = new EnumMap<>(EventKind.class);
        final AtomicInteger windowsBefore = new AtomicInteger();
        Attempts.of(ATTEMPTS, () -> {
            final InvariantCheck.Finding finding = threeTasks();
            final int windows = finding.windows() - windowsBefore.getAndSet(finding.windows());
            final Map<EventKind, Integer> count = events();
            final Map<EventKind, Integer> all = Map.copyOf(count);
            before.forEach((kind, n) -> count.merge(kind, -n, Integer::sum));
            before.putAll(all);
            assertEquals(count.get(EventKind.BEGIN), count.get(EventKind.END));
            assertEquals(count.get(EventKind.BEGIN), count.get(EventKind.GRANT));
            // the context of a process that left while it was off is forgotten, not enabled
            final int forgotten = count.get(EventKind.DISABLE) - count.get(EventKind.ENABLE);
            // and what the watchdog enabled, since the machine did not let the daemon run, is disabled once more
            final int releases = count.getOrDefault(EventKind.WATCHDOG, 0);
            assertTrue(forgotten >= 0 && forgotten <= 3 + 3 * releases,
                forgotten + " contexts were disabled and not enabled");
            assertEquals(1, count.get(EventKind.STOP));
            final String seen = windows + " windows; the watchdog ended some " + releases + " times";
            assertTrue(windows >= 70 || releases > 0, seen);
            return windows >= 70 ? null : seen;
        });
    }

    /** Three tasks of two seconds: 50 and 20 real-time segments, and best-effort work. */
    private InvariantCheck.Finding threeTasks() throws Exception {
        final Child gpu = rig.gpu();
        final Child daemon = rig.daemon();
        final Child high = rig.task("high", 90, "40ms", "gpu:500us+5ms", "2s");
        final Child low = rig.task("low", 10, "100ms", "gpu:500us+30ms", "2s");
        final Child background = rig.task("background", 0, "50ms", "gpu:500us+30ms", "2s");
        assertEquals(50, SystemRig.summary(high, 20).path("jobs").asInt());
        assertEquals(20, SystemRig.summary(low, 20).path("jobs").asInt());
        SystemRig.summary(background, 20);
        assertTrue(rig.counter("preemptions") > 0, "the low task was preempted");
        assertEquals(0, rig.counter("poisoned"));
        assertEquals(0, rig.counter("cycle_errors"));
        daemon.terminate();
        assertEquals(0, daemon.awaitExit(20), daemon.said());
        assertEquals(0, rig.held());
        gpu.terminate();
        gpu.awaitExit(20);
        final InvariantCheck.Finding finding =
            InvariantCheck.of(rig.directory().journal(), rig.file("spans"), "fp");
        assertEquals(0, finding.overlaps());
        assertTrue(finding.spans() > 100, finding.spans() + " executions");
        assertEquals(0, finding.journalGaps());
        return finding;
    }

    @Test
    void shouldEnableWhatAKilledDaemonHeldAndReconcileAtRestart() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final Child background = rig.task("background", 0, "20ms", "gpu:0ms+2ms", "120s");
        SystemRig.await("background runs", 20_000, () -> rig.counter("ends") > 5);
        rig.task("holder", 90, "10s", "gpu:0ms+20s", "20s");
        SystemRig.await("the background is off the hardware", 20_000, () -> rig.held() > 0);
        SystemRig.signal(daemon, "KILL");
        // Entries are cleared when the last thread of the daemon is gone, which takes as long as the machine is busy.
        // The contexts are enabled before that, when its heartbeat is old: how soon, the next test measures.
        SystemRig.await("the watchdog enables it", 20_000, () -> rig.held() == 0);
        daemon.awaitExit(20);
        final Child next = rig.daemon();
        assertEquals(0, rig.held());
        assertTrue(background.isAlive(), background.said());
        next.terminate();
        assertEquals(0, next.awaitExit(20), next.said());
    }

    /** The device enables so slowly that the watchdog no longer waits for it, and counts the release as failed. */
    @Test
    void shouldDisableAgainWhatTheWatchdogReleasedWithoutSeeingTheEnd() throws Exception {
        rig.gpu("--enable-cost", "80ms", "--operations", rig.file("operations").toString());
        final Child daemon = rig.daemon();
        rig.task("background", 0, "200s", "gpu:0ms+200s", "200s");
        SystemRig.await("background runs", LIMIT_MS, () -> "running".equals(rig.state("background")));
        rig.task("holder", 90, "200s", "gpu:0ms+200s", "200s");
        try (OperationLog log = new OperationLog(rig.file("operations"))) {
            SystemRig.await("the background is off the hardware", LIMIT_MS, () -> disabled(log) == 1);
            SystemRig.signal(daemon, "STOP");
            SystemRig.await("the device has enabled it", LIMIT_MS, () -> disabled(log) == 0);
            SystemRig.signal(daemon, "CONT");
            SystemRig.await("it is disabled again, in the same window", LIMIT_MS, () -> disabled(log) == 1);
        }
        assertEquals("running", rig.state("holder"));
        SystemRig.await("the status says so", LIMIT_MS,
            () -> !rig.status().at("/gpus/0/enforcement_incomplete").asBoolean(true));
        SystemRig.await("the release is in the journal", LIMIT_MS, () -> events().containsKey(EventKind.WATCHDOG));
    }

    private static int disabled(final OperationLog log) {
        try {
            log.read();
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
        return log.disabled();
    }

    /** The freeze that an application sees: what was off the hardware executes again, whatever the files say. */
    @Test
    void shouldLetTheOthersExecuteWithin100MsAfterTheDaemonIsKilled() throws Exception {
        Attempts.of(ATTEMPTS, this::freeze);
    }

    private String freeze() throws Exception {
        final Child gpu = rig.gpu();
        final Child daemon = rig.daemon();
        final Child background = rig.task("background", 0, "20ms", "gpu:0ms+2ms", "60s");
        SystemRig.await("background runs", 20_000, () -> rig.counter("ends") > 5);
        final Child holder = rig.task("holder", 90, "60s", "gpu:0ms+60s", "60s");
        SystemRig.await("the background is off the hardware", 20_000, () -> rig.held() > 0);
        Thread.sleep(100);   // it has a kernel that waits
        final long killedNs;
        final long lateNs;
        try (StallProbe machine = new StallProbe()) {
            killedNs = System.nanoTime();
            ProcessStatus.signal((int) daemon.pid(), SIGKILL);
            Thread.sleep(1_000);
            lateNs = machine.longestNs();
        }
        gpu.terminate();
        gpu.awaitExit(20);
        daemon.awaitExit(20);
        background.close();
        holder.close();
        long last = 0;
        long first = Long.MAX_VALUE;
        final ByteBuffer spans = ByteBuffer.wrap(Files.readAllBytes(rig.file("spans"))).order(ByteOrder.LITTLE_ENDIAN);
        for (int at = 0; at + Abi.SimSpan.SIZE <= spans.capacity(); at += Abi.SimSpan.SIZE) {
            if (spans.getInt(at + Abi.SimSpan.PID_OFFSET) == background.pid()) {
                final long startNs = spans.getLong(at + Abi.SimSpan.START_NS_OFFSET);
                if (startNs < killedNs) {
                    last = startNs;
                } else {
                    first = Math.min(first, startNs);
                }
            }
        }
        final long frozenNs = first - killedNs;
        return killedNs - last > 50_000_000 && frozenNs <= WATCHDOG_PERIOD_NS + lateNs ? null
            : "off the hardware for " + (killedNs - last) + " ns, it executes " + frozenNs
            + " ns after the daemon's death; the machine itself was late by " + lateNs + " ns";
    }

    @Test
    void shouldEnableAtRestartWhatNobodyEnabledBefore() throws Exception {
        rig.gpu();
        final Child daemon = rig.with("no-watchdog: true").daemon();
        rig.task("background", 0, "20ms", "gpu:0ms+2ms", "20s");
        SystemRig.await("background runs", 20_000, () -> rig.counter("ends") > 5);
        rig.task("holder", 90, "10s", "gpu:0ms+20s", "20s");
        SystemRig.await("the background is off the hardware", 20_000, () -> rig.held() > 0);
        SystemRig.signal(daemon, "KILL");
        daemon.awaitExit(20);
        Thread.sleep(200);
        assertTrue(rig.held() > 0, "without a watchdog it is not enabled");
        rig.daemon();
        assertEquals(0, rig.held(), "the new daemon has");
    }

    @Test
    void shouldGrantTheNextWhenTheHolderIsKilled() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child holder = rig.task("holder", 90, "10s", "gpu:0ms+30s", "30s");
        SystemRig.await("holder holds", 20_000, () -> "running".equals(rig.state("holder")));
        final Child next = rig.task("next", 50, "50ms", "gpu:0ms+2ms", "300ms");
        SystemRig.await("next waits", 20_000, () -> "waiting".equals(rig.state("next")));
        SystemRig.signal(holder, "KILL");
        assertEquals(6, SystemRig.summary(next, 40).path("jobs").asInt());
        SystemRig.await("the dead client is removed", 20_000, () -> "gone".equals(rig.state("holder")));
        SystemRig.await("nothing is held", 20_000, () -> rig.held() == 0);
    }

    @Test
    @Tag("long")
    void shouldForgetAKilledWaiter() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child holder = rig.task("holder", 90, "10s", "gpu:0ms+8s", "1s");
        SystemRig.await("holder holds", 20_000, () -> "running".equals(rig.state("holder")));
        final Child waiter = rig.task("waiter", 50, "1s", "gpu:0ms+2ms", "1s");
        SystemRig.await("waiter waits", 20_000, () -> "waiting".equals(rig.state("waiter")));
        SystemRig.signal(waiter, "KILL");
        SystemRig.await("the waiter is removed", 20_000, () -> "gone".equals(rig.state("waiter")));
        assertEquals("running", rig.state("holder"), "the holder is not disturbed");
        assertEquals(1, SystemRig.summary(holder, 40).path("jobs").asInt());
        assertEquals(0, rig.counter("cycle_errors"));
    }

    @Test
    @Tag("long")
    void shouldNotLetAStoppedClientDelayTheOthers() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child stopped = rig.task("stopped", 0, "10ms", "gpu:0ms+4ms", "6s");
        final Child lower = rig.task("lower", 20, "30ms", "gpu:0ms+4ms", "6s");
        SystemRig.await("both run", 20_000, () -> rig.counter("ends") > 10);
        SystemRig.signal(stopped, "STOP");
        SystemRig.signal(lower, "STOP");
        Attempts.of(ATTEMPTS, () -> {
            final JsonNode figures = SystemRig.summary(rig.task("high", 90, "20ms", "gpu:0ms+3ms", "1s"), 40);
            assertEquals(50, figures.path("jobs").asInt());
            return figures.path("p50_ms").asDouble() < 10 ? null : figures.toString();
        });
        SystemRig.signal(stopped, "CONT");
        SystemRig.signal(lower, "CONT");
        SystemRig.summary(stopped, 40);
        SystemRig.summary(lower, 40);
        assertEquals(0, rig.counter("poisoned"));
    }

    /** What it has begun it cannot end: its budget ends its rank. */
    @Test
    void shouldNotLetAStoppedHolderDelayTheOthersForLongerThanItsBudget() throws Exception {
        rig.gpu();
        rig.daemon();
        Attempts.of(ATTEMPTS, this::stoppedHolder);
    }

    private String stoppedHolder() throws Exception {
        final Child holder = rig.start("holder", List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.directory().root().toString(), "--name", "holder", "--priority", "90", "--period", "60s", "--segments",
            "gpu:0ms+60s", "--duration", "60s", "--cpu-mode", "sleep", "--always-wait", "--budget",
            BUDGET_NS / 1_000_000 + "ms"));
        SystemRig.await("holder holds", 20_000, () -> "running".equals(rig.state("holder")));
        SystemRig.signal(holder, "STOP");
        final Child next = rig.task("next", 50, "50ms", "gpu:0ms+2ms", "300ms");
        assertEquals(6, SystemRig.summary(next, 40).path("jobs").asInt());
        final Map<EventKind, Long> lastNs = new EnumMap<>(EventKind.class);
        final List<Long> grantedNs = new ArrayList<>();
        final long grants = rig.counter("grants");
        SystemRig.await("all grants are journaled", 20_000, () -> {
            grantedNs.clear();
            JournalReader.forEach(rig.directory().journal(), event -> {
                if (event.kind() == EventKind.GRANT) {
                    grantedNs.add(event.timeNs());
                } else {
                    lastNs.put(event.kind(), event.timeNs());
                }
            });
            return grantedNs.size() >= grants;
        });
        final long heldNs = grantedNs.get(grantedNs.size() - 7);   // before six of the next one
        final long tookNs = grantedNs.get(grantedNs.size() - 6) - heldNs;
        assertTrue(lastNs.get(EventKind.OVERRUN) - heldNs >= BUDGET_NS, "not before its budget: " + lastNs);
        SystemRig.signal(holder, "KILL");
        SystemRig.await("the holder is removed", 20_000, () -> "gone".equals(rig.state("holder")));
        return tookNs <= BUDGET_NS + UPDATE_NS ? null : "the next was granted after " + tookNs + " ns";
    }

    @Test
    @Tag("long")
    void shouldLetEverybodyGoWhenItStopsWhileOthersAreHeld() throws Exception {
        rig.gpu();
        final Child daemon = rig.daemon();
        final Child background = rig.task("background", 0, "20ms", "gpu:0ms+2ms", "8s");   // still when it is held
        SystemRig.await("background runs", 20_000, () -> rig.counter("ends") > 5);
        rig.task("holder", 90, "10s", "gpu:0ms+20s", "20s");
        SystemRig.await("the background is off the hardware", 20_000, () -> rig.held() > 0);
        final StringOutput stop = StringOutput.of("stop", "--dir", rig.directory().root().toString());
        assertEquals(ExitCode.OK, stop.status(), stop.text());
        assertFalse(ProcessStatus.isAlive((int) daemon.pid(), 0), "stop waits for the end");
        assertEquals(0, daemon.awaitExit(20), daemon.said());
        assertEquals(0, rig.held());
        SystemRig.summary(background, 40);
    }

    @Test
    void shouldLetAProcessRegisterAgainRightAfterItLeft() throws Exception {
        rig.gpu();
        rig.daemon();
        final Child again = rig.start("again", List.of(NativePrograms.named("gpuseg-bench-ipc").toString(), "--dir",
            rig.directory().root().toString(), "--n", "10", "--warmup", "0", "begin", "begin", "begin", "begin"));
        assertEquals(0, again.awaitExit(20), again.said());
        SystemRig.await("all four are removed", 20_000, () -> rig.counter("clients_closed") == 4);
        assertEquals(4, rig.counter("clients_opened"));
        assertEquals(0, rig.counter("poisoned"));
    }

    @Test
    void shouldChangePolicyAndPriorityOfTheRunningDaemon() throws Exception {
        rig.gpu();
        rig.daemon();
        final String dir = rig.directory().root().toString();
        rig.task("camera", 30, "50ms", "gpu:0ms+2ms", "200s");
        SystemRig.await("camera runs", 20_000, () -> rig.counter("ends") > 2);
        assertEquals(ExitCode.OK, StringOutput.of("policy", "--dir", dir, "--set", "edf").status());
        assertEquals("edf", rig.status().path("policy").asText());
        final StringOutput hint = StringOutput.of("set", "--dir", dir, "camera", "--priority", "77");
        assertEquals(ExitCode.OK, hint.status(), hint.text());
        assertEquals(77, rig.status().path("tasks").get(0).path("priority").asInt());
        final StringOutput unknown = StringOutput.of("set", "--dir", dir, "camer", "--priority", "7");
        assertEquals(ExitCode.FAILURE, unknown.status());
        final StringOutput pid = StringOutput.of("set", "--json", "--dir", dir,
            rig.status().path("tasks").get(0).path("pid").asText(), "--priority", "78", "--weight", "3", "--cap",
            "25ms/100ms");
        assertEquals(ExitCode.OK, pid.status(), pid.text());
        assertTrue(pid.out().contains("priority 78") && pid.out().contains("weight 3, cap 25ms/100ms"), pid.out());
        final int process = rig.status().path("tasks").get(0).path("pid").asInt();
        final StringOutput again = StringOutput.of("set", "--dir", dir, Integer.toString(process), "--weight", "4");
        assertEquals("process " + process + " \"camera\" weight 4, cap 25ms/100ms", again.out().strip());
        final StringOutput later = StringOutput.of("policy", "--dir", dir);
        assertTrue(later.out().contains("weight 4, cap 25ms/100ms"), "of this process alone: " + later);
        final StringOutput nobody = StringOutput.of("set", "--dir", dir, "999999999", "--weight", "4");
        assertEquals(ExitCode.FAILURE, nobody.status());
        assertTrue(nobody.err().contains("no process 999999999 uses a GPU"), nobody.text());
        final StringOutput heavy = StringOutput.of("set", "--dir", dir, Integer.toString(process), "--weight", "0");
        assertEquals(ExitCode.USAGE, heavy.status(), heavy.text());
        assertEquals(ExitCode.OK, StringOutput.of("set", "--dir", dir, Integer.toString(process), "--weight", "3")
            .status());
        final StringOutput shown = StringOutput.of("policy", "--dir", dir);
        assertTrue(shown.out().contains("weight 3, cap 25ms/100ms"), "durations come back as they went in: " + shown);
        final StringOutput wrong = StringOutput.of("set", "--dir", dir, "nosuch", "--weight", "3");
        assertEquals(ExitCode.FAILURE, wrong.status(), wrong.text());
        assertTrue(wrong.err().contains("no open task or process \"nosuch\""), wrong.err());
        assertTrue(unknown.text().contains("did you mean 'camera'?"), unknown.text());
        final StringOutput status = StringOutput.of("status", "--dir", dir);
        assertTrue(status.text().contains("camera") && status.text().contains("SIMULATED GPU"), status.text());
    }
}
