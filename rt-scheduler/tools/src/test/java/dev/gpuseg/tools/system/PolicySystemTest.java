/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.system;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.Attempts;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.mechanisms.sim.SimMechanism;
import dev.gpuseg.tools.bench.GpuShare;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.rig.StringOutput;
import dev.gpuseg.tools.rig.SystemRig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Policies and their parameters on the virtual GPU, with real processes and a real daemon. */
@Timeout(300)
@Tag("long")
class PolicySystemTest {
    private static final long MS = 1_000_000;
    /** Wide: the machine that tests may be busy. {@code gpuseg bench fair} measures in earnest. */
    private static final double TOLERANCE = 0.2;
    private static final double CAP_TOLERANCE = 0.05;
    /** A machine with more to do than it has cores stalls the daemon for tens of ms now and then: look again. */
    private static final int ATTEMPTS = 4;

    @RegisterExtension
    private final SystemRig rig = new SystemRig();

    /** A task of one endless segment. */
    private Child endless(final String name, final int priority, final String... more) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", rig.directory().root().toString(), "--name", name, "--priority", Integer.toString(priority),
            "--period", "60s", "--segments", "gpu:0ms+60s", "--duration", "60s", "--cpu-mode", "sleep"));
        command.addAll(List.of(more));
        return rig.start(name, command);
    }

    private void awaitBegun(final String... tasks) throws InterruptedException {
        for (final String task : tasks) {
            SystemRig.await(task + " has begun", 30_000, () -> List.of("running", "preempted").contains(
                rig.state(task)));
        }
    }

    private double[] sharesOf(final long overNs, final Child... tasks) throws Exception {
        final long fromNs = System.nanoTime();
        Thread.sleep(overNs / MS);
        final long toNs = System.nanoTime();
        Thread.sleep(300);   // the slice in progress is logged when it ends
        final double[] shares = new double[tasks.length];
        for (int i = 0; i < tasks.length; i++) {
            shares[i] = GpuShare.of(rig.file("spans"), tasks[i].pid(), fromNs, toNs);
        }
        return shares;
    }

    @Test
    void shouldShareByWeightInTurns() throws Exception {
        rig.realTime();
        final Child one = endless("one", 0, "--weight", "100");
        final Child two = endless("two", 0, "--weight", "200");
        final Child four = endless("four", 0, "--weight", "400");
        awaitBegun("one", "two", "four");
        Thread.sleep(300);
        assertShares(2_800 * MS, one, two, four);
    }

    @Test
    void shouldShareByWeightInTimeslices() throws Exception {
        Files.writeString(rig.file("policy.yaml"), "version: 1\nsharing: timeslices\nquantum: 1ms\n");
        rig.realTime("--policy-file", rig.file("policy.yaml").toString());
        final Child one = endless("one", 0, "--weight", "100");
        final Child two = endless("two", 0, "--weight", "200");
        final Child four = endless("four", 0, "--weight", "400");
        awaitBegun("one", "two", "four");
        Thread.sleep(300);
        assertShares(2_000 * MS, one, two, four);
        assertEquals(0, rig.counter("preemptions"), "no segment is preempted");
    }

    /** Best effort that uses a part of the GPU; it computes in between. */
    private Child light(final String name, final String segments) {
        return rig.start(name, List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.directory().root().toString(), "--name", name, "--period", "12ms", "--segments", segments,
            "--duration", "120s"));
    }

    private boolean isTogether() {
        return rig.status().path("gpus").get(0).path("best_effort_together").asBoolean();
    }

    /** Two that leave it idle in their turns share it together, until a third fills it. */
    @Test
    void shouldTakeTurnsOnlyWhileOneProgramFillsTheGpu() throws Exception {
        rig.withJvm("-D" + SimMechanism.SLICES_PROPERTY + "=true").realTime();
        final List<String> camera = List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
            rig.directory().root().toString(), "--name", "camera", "--priority", "90", "--period", "100ms",
            "--segments", "gpu:0ms+1ms", "--budget", "5ms", "--duration", "120s");
        light("one", "cpu:4ms,gpu:0ms+3ms");
        light("two", "cpu:4ms,gpu:0ms+3ms");
        rig.start("camera", camera);
        SystemRig.await("best effort is together", 60_000, this::isTogether);
        for (int i = 0; i < 3; i++) {
            endless("full" + i, 0);
        }
        SystemRig.await("best effort takes turns", 60_000, () -> !isTogether());
        final List<String> said = new ArrayList<>();
        JournalReader.forEach(rig.directory().journal(), event -> {
            if (event.kind() == EventKind.POLICY && event.text().startsWith("settings GPU 0 worked")) {
                said.add(event.text().replaceAll(".*: ", ""));
            }
        });
        assertEquals(List.of("best effort shares it together", "best effort takes turns"), said.subList(0, 2));
    }

    private void assertShares(final long overNs, final Child... tasks) throws Exception {
        Attempts.of(ATTEMPTS, () -> {
            final double[] shares = sharesOf(overNs, tasks);
            final double sum = shares[0] + shares[1] + shares[2];
            double worst = sum > 0.5 ? 0 : 1;
            for (int i = 0; i < 3; i++) {
                worst = Math.max(worst, Math.abs(shares[i] / sum * 7 / (1 << i) - 1));
            }
            return worst <= TOLERANCE ? null : String.format(Locale.ROOT, "%.4f %.4f %.4f of %.4f", shares[0] / sum,
                shares[1] / sum, shares[2] / sum, sum);
        });
    }

    private void assertCapped(final Child task, final String what) throws Exception {
        Attempts.of(ATTEMPTS, () -> {
            final double share = sharesOf(2_000 * MS, task)[0];
            return Math.abs(share - 0.25) <= CAP_TOLERANCE ? null : what + ": " + share + " of the GPU";
        });
    }

    @Test
    void shouldCapAProcessAndLetTheOthersHaveTheRest() throws Exception {
        rig.realTime();
        final Child capped = endless("capped", 0);
        final String dir = rig.directory().root().toString();
        awaitBegun("capped");
        final StringOutput set = StringOutput.of("set", "--dir", dir, "capped", "--cap", "25ms/100ms");
        assertEquals(ExitCode.OK, set.status(), set.text());
        assertTrue(set.text().contains("cap 25ms/100ms"), set.text());
        assertCapped(capped, "alone");
        final Child free = endless("free", 0);
        awaitBegun("free");
        assertCapped(capped, "beside another");
        Attempts.of(ATTEMPTS, () -> {
            final double rest = sharesOf(1_000 * MS, free)[0];
            return rest > 0.5 ? null : "the other has the rest: " + rest;
        });
    }

    @Test
    void shouldSuspendAnEndlessRealTimeKernelUntilSomebodyLiftsIt() throws Exception {
        final Child high = lowRunsBesideAnEndlessKernel("suspend");
        Attempts.of(ATTEMPTS, () -> {
            final double share = sharesOf(300 * MS, high)[0];
            return share <= 0.001 ? null : "a suspended process has " + share + " of the GPU though it is off";
        });
        assertEquals("preempted", rig.state("high"));
        final StringOutput lifted = StringOutput.of("set", "--dir", rig.directory().root().toString(), "high",
            "--overrun", "demote");
        assertEquals(ExitCode.OK, lifted.status(), lifted.text());
        assertEquals("running", rig.state("high"), "it resumes when an administrator says so");
    }

    @Test
    void shouldDemoteAnEndlessRealTimeKernel() throws Exception {
        lowRunsBesideAnEndlessKernel("demote");
        assertEquals("running", rig.state("high"), "it goes on as best effort");
    }

    @Test
    void shouldDemoteAnEndlessRealTimeKernelThatSkipsTheNext() throws Exception {
        lowRunsBesideAnEndlessKernel("skip-next");
        assertEquals("running", rig.state("high"), "it goes on as best effort");
    }

    /** A budget of 20 ms is all that an endless kernel of the highest priority takes from a lower task. */
    private Child lowRunsBesideAnEndlessKernel(final String action) throws Exception {
        rig.realTime();
        final Child high = endless("high", 90, "--budget", "20ms", "--overrun", action);
        awaitBegun("high");
        Attempts.of(ATTEMPTS, () -> {
            final Child low = rig.start("low", List.of(NativePrograms.named("gpuseg-demo-task").toString(), "--dir",
                rig.directory().root().toString(), "--name", "low", "--priority", "10", "--period", "50ms",
                "--segments", "gpu:0ms+5ms", "--duration", "1s", "--cpu-mode", "sleep", "--scheduling", "fifo:80"));
            final JsonNode figures = SystemRig.summary(low, 40);
            assertEquals(20, figures.path("jobs").asInt());
            return figures.path("p50_ms").asDouble() < 25 ? null : figures.toString();
        });
        assertEquals(1, rig.counter("overruns"));
        return high;
    }

    @Test
    void shouldRefuseTheBeginAfterAnOverrun() throws Exception {
        rig.realTime();
        Attempts.of(ATTEMPTS, () -> {
            final long before = rig.counter("skipped");
            final Child task = rig.start("skipper", List.of(NativePrograms.named("gpuseg-demo-task").toString(),
                "--dir", rig.directory().root().toString(), "--name", "skipper", "--priority", "50", "--period",
                "50ms", "--segments", "gpu:0ms+20ms", "--duration", "1s", "--budget", "10ms", "--overrun",
                "skip-next", "--cpu-mode", "sleep", "--scheduling", "fifo:80"));
            final JsonNode figures = SystemRig.summary(task, 40);
            assertEquals(20, figures.path("jobs").asInt());
            final int skipped = figures.path("skipped").asInt();
            assertEquals(skipped, rig.counter("skipped") - before);
            assertTrue(rig.counter("overruns") >= before + skipped);
            assertTrue(skipped <= 10, "one in two at most: " + figures);
            return skipped >= 6 ? null : figures.toString();   // 10 without delays
        });
        assertEquals(0, rig.counter("poisoned"));
    }

    @Test
    void shouldKeepPartitionsApart() throws Exception {
        Files.writeString(rig.file("policy.yaml"), """
            version: 1
            policy: partitions
            frame: 60ms
            guard: 3ms
            windows:
              - {partition: 1, offset: 0ms, length: 20ms}
              - {partition: 2, offset: 20ms, length: 30ms}
            """);
        rig.realTime("--policy-file", rig.file("policy.yaml").toString());
        final Child first = endless("first", 50, "--partition", "1");
        final Child second = endless("second", 90, "--partition", "2");
        final Child neither = endless("neither", 99);
        SystemRig.await("all have begun", 30_000, () -> rig.counter("grants") + rig.counter("optimistic_begins") >= 3);
        Thread.sleep(300);
        Attempts.of(ATTEMPTS, () -> {
            final long fromNs = System.nanoTime();
            Thread.sleep(900);
            final long toNs = System.nanoTime();
            Thread.sleep(200);
            final long outsideNs = outside(first, fromNs, toNs, 0, 20) + outside(second, fromNs, toNs, 20, 50)
                + outside(neither, fromNs, toNs, 50, 60);
            final double one = GpuShare.of(rig.file("spans"), first.pid(), fromNs, toNs);
            final double other = GpuShare.of(rig.file("spans"), second.pid(), fromNs, toNs);
            return outsideNs == 0 && one > 0.1 && other > 0.2 ? null
                : outsideNs + " ns outside of windows, shares " + one + " and " + other;
        });
    }

    private long outside(final Child task, final long fromNs, final long toNs, final int openMs, final int closedMs)
        throws IOException {
        return GpuShare.outside(rig.file("spans"), task.pid(), fromNs, toNs, 60 * MS, openMs * MS, closedMs * MS);
    }

    private StringOutput policy(final String rules) throws IOException {
        final Path file = Files.writeString(rig.file("rules.yaml"), "version: 1\n" + rules + "\n");
        return StringOutput.of("policy", "--dir", rig.directory().root().toString(), file.toString());
    }

    @Test
    void shouldChangeAndShowThePolicyOfTheRunningDaemon() throws Exception {
        rig.realTime();
        final String dir = rig.directory().root().toString();
        final StringOutput shown = StringOutput.of("policy", "--dir", dir);
        assertEquals(ExitCode.OK, shown.status(), shown.text());
        assertTrue(shown.text().startsWith("policy fp"), shown.text());
        assertEquals(ExitCode.OK, StringOutput.of("policy", "--dir", dir, "--set", "edf").status());
        assertEquals("edf", rig.status().path("policy").asText());
        final StringOutput late = policy("tasks: [{task: later, overrun: notify, weight: 300}]");
        assertEquals(ExitCode.OK, late.status(), late.text());
        endless("later", 0);
        awaitBegun("later");
        final String text = StringOutput.of("policy", "--dir", dir).text();
        assertTrue(text.contains("weight 300") && text.contains("overrun notify"), text);
        final StringOutput bad = policy("tasks: [{task: later, cap: 200ms/100ms}]");
        assertEquals(ExitCode.USAGE, bad.status());
        assertTrue(bad.text().contains("cap is \"200ms/100ms\""), bad.text());
        Files.writeString(rig.file("bad.yaml"), "policy: partitions\nframe: 100\n");
        final StringOutput file = StringOutput.of("policy", "--dir", dir, rig.file("bad.yaml").toString());
        assertEquals(ExitCode.USAGE, file.status());
        assertTrue(file.text().contains("bad.yaml:2:8: frame is the bare number 100"), file.text());
        final int[] changes = new int[1];
        SystemRig.await("journaled", 20_000, () -> {
            changes[0] = 0;
            JournalReader.forEach(rig.directory().journal(), event ->
                changes[0] += event.kind() == EventKind.POLICY ? 1 : 0);
            return changes[0] >= 2;
        });
    }

    @Test
    void shouldKeepSettingsForTheNextDaemonIfAsked() throws Exception {
        rig.gpu();
        rig.daemon();
        final String dir = rig.directory().root().toString();
        assertEquals(ExitCode.USAGE, StringOutput.of("policy", "--dir", dir, "--save", "--forget").status());
        assertEquals(ExitCode.OK, policy("tasks: [{task: later, overrun: suspend}]").status());
        assertTrue(Files.notExists(rig.file("policy.json")), "it was not asked for");
        final StringOutput saved = StringOutput.of("policy", "--dir", dir, "--set", "edf", "--save");
        assertEquals(ExitCode.OK, saved.status(), saved.text());
        assertTrue(saved.text().contains("policy.json for the next start"), saved.text());
        final Child next = rig.nextDaemon();
        assertEquals("edf", rig.status().path("policy").asText());
        SystemRig.await("it says so", 20_000, () -> next.said().contains("hold again"));
        endless("later", 0);
        awaitBegun("later");
        assertTrue(StringOutput.of("policy", "--dir", dir).text().contains("overrun suspend"), "set before, too");
        Files.writeString(rig.file("policy.json"), "{\"version\":1,\"policy\":\"ed");
        final Child third = rig.nextDaemon();
        assertEquals("fp", rig.status().path("policy").asText());
        SystemRig.await("one line", 20_000, () -> third.said().contains("saved policy settings are ignored: "
            + rig.file("policy.json") + " is not JSON"));
        assertEquals(ExitCode.OK, StringOutput.of("policy", "--dir", dir, "--forget").status());
        assertTrue(Files.notExists(rig.file("policy.json")));
    }
}
