/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.rig;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.Polling;
import dev.gpuseg.tools.process.RealTime;
import dev.gpuseg.tools.process.SimulatedMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * A runtime directory in memory with a virtual GPU, a real daemon in a JVM of its own, and C tasks. When a test fails
 * it prints the last events of the journal, the daemon's status and all error output; afterwards it kills what it
 * started.
 */
public final class SystemRig implements BeforeEachCallback, AfterEachCallback {
    private static final int START_ATTEMPTS = 5;
    private static final int HANG_MS = 15_000;
    private static final int LAST_EVENTS = 60;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final List<String> settings = new ArrayList<>();
    private final List<String> jvm = new ArrayList<>();
    private SimulatedMachine machine;
    private Path root;

    @Override
    public void beforeEach(final ExtensionContext context) throws IOException {
        root = Files.createTempDirectory(Path.of("/dev/shm"), "gpuseg-test-");
        settings.clear();
        settings.add("warm-up: false");
        machine = new SimulatedMachine(root, root, false);
    }

    @Override
    public void afterEach(final ExtensionContext context) {
        if (context.getExecutionException().isPresent()) {
            dump();
        }
        machine.close();
        RuntimeDirectory.deleteTree(root);
    }

    private void dump() {
        final StringBuilder text = new StringBuilder("---- journal, last " + LAST_EVENTS + " events ----\n");
        final Deque<JournalEvent> last = new ArrayDeque<>();
        try {
            JournalReader.forEach(directory().journal(), event -> {
                last.add(event.copy());
                if (last.size() > LAST_EVENTS) {
                    last.removeFirst();
                }
            });
        } catch (final RuntimeException e) {
            text.append("(").append(e.getMessage()).append(")\n");
        }
        last.forEach(event -> text.append(event).append('\n'));
        text.append("---- sessions and counters ----\n");
        try {
            text.append(status()).append('\n');
        } catch (final RuntimeException e) {
            text.append("(").append(e.getMessage()).append(")\n");
        }
        for (final Child child : machine.processes()) {
            text.append("---- ").append(child.pid()).append(child.isAlive() ? " lives" : " is gone").append(": ")
                .append(child.said()).append('\n');
        }
        System.err.println(text);
    }

    public RuntimeDirectory directory() {
        return machine.directory();
    }

    public Path file(final String name) {
        return root.resolve(name);
    }

    public Child start(final String name, final List<String> command) {
        return machine.start(name, command);
    }

    public Child gpu(final String... options) throws InterruptedException {
        final List<String> all = new ArrayList<>(List.of("--log", file("spans").toString()));
        all.addAll(List.of(options));
        return machine.startGpu(all);
    }

    /** A virtual GPU and a daemon that a busy machine does not hold up, where that is permitted. */
    public void realTime(final String... options) throws InterruptedException {
        machine.startGpu("--log", file("spans").toString(), "--scheduling", "fifo:98");
        final List<String> all = new ArrayList<>(List.of(options));
        if (RealTime.isPermitted()) {
            all.addAll(List.of("--priority", "90"));
        }
        daemon(all.toArray(new String[0]));
    }

    /** Options of the JVM of every daemon of this test from now on. */
    public SystemRig withJvm(final String... options) {
        jvm.addAll(List.of(options));
        return this;
    }

    /** Lines of the settings file of every daemon of this test from now on. */
    public SystemRig with(final String... lines) {
        settings.addAll(List.of(lines));
        return this;
    }

    /** The lines are no longer in the settings file of every later daemon of this test. */
    public SystemRig without(final String... lines) {
        settings.removeAll(List.of(lines));
        return this;
    }

    /** The options of {@code gpuseg run} for the settings of this test; without warm-up. */
    public List<String> settings() {
        return DaemonSettings.write(file("settings.yaml"), settings);
    }

    public Child daemon(final String... options) throws InterruptedException {
        final List<String> arguments = new ArrayList<>(settings());
        if (Collections.disjoint(Arrays.asList(options), List.of("--policy", "--policy-file", "--policy-jar"))) {
            arguments.addAll(List.of("--policy", "fp"));
        }
        arguments.addAll(Arrays.asList(options));
        for (int attempt = 1;; attempt++) {
            try {
                return machine.startDaemon(jvm, arguments);
            } catch (final IllegalStateException e) {
                // a daemon does not start without its GPU's answer, and a machine that stalls may delay that one
                if (attempt == START_ATTEMPTS || !e.getMessage().contains("vgpu.ctl did not answer within")) {
                    throw e;
                }
            }
        }
    }

    /** The next daemon in the same directory: stops the running ones cleanly first. */
    public Child nextDaemon(final String... options) throws InterruptedException, TimeoutException {
        if (machine.daemon() != null && machine.daemon().isAlive()) {
            machine.stopDaemon();
        }
        return daemon(options);
    }

    /** A task; its CPU parts only sleep. */
    public Child task(final String name, final int priority, final String period, final String segments,
        final String duration) {
        return machine.startTask(name, List.of("--priority", Integer.toString(priority), "--period", period,
            "--segments", segments, "--duration", duration, "--cpu-mode", "sleep"));
    }

    public JsonNode status() {
        return machine.status();
    }

    public long counter(final String label) {
        return AdminClient.counter(status(), label);
    }

    public int held() {
        return machine.held();
    }

    /** The state of a task, "gone" if it is not open. */
    public String state(final String task) {
        for (final JsonNode node : status().path("tasks")) {
            if (task.equals(node.path("name").asText())) {
                return node.path("state").asText();
            }
        }
        return "gone";
    }

    public static JsonNode summary(final Child task, final int limitSeconds) throws IOException, InterruptedException,
        TimeoutException {
        final int status = task.awaitExit(limitSeconds);
        if (status != 0) {
            throw new AssertionError("task ended with status " + status + ": " + task.said());
        }
        return JSON.readTree(task.lastLine());
    }

    /** Waits for the end of a process that may also go on. */
    public static void awaitEnd(final Child child, final int limitMs) throws InterruptedException {
        for (int waitedMs = 0; child.isAlive() && waitedMs < limitMs; waitedMs += 10) {
            TimeUnit.MILLISECONDS.sleep(10);
        }
    }

    /** Waits for what must come: the limit only detects a hang, on any machine. */
    public static void await(final String what, final int limitMs, final BooleanSupplier condition)
        throws InterruptedException {
        if (limitMs < HANG_MS) {
            throw new IllegalArgumentException(what + ": a limit of " + limitMs + " ms takes a machine that stalls for "
                + "a hang; give at least " + HANG_MS);
        }
        if (!Polling.until(condition, limitMs)) {
            throw new AssertionError(what + ": not within " + limitMs + " ms");
        }
    }

    public static void signal(final Child child, final String name) throws IOException, InterruptedException {
        final Process kill = new ProcessBuilder("kill", "-" + name, Long.toString(child.pid())).start();
        if (kill.waitFor() != 0) {
            throw new AssertionError("kill -" + name + " " + child.pid() + " failed");
        }
    }
}
