/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.MemoryDirectory;
import dev.gpuseg.tools.process.SimulatedMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** A virtual GPU, a daemon in a JVM of its own, and {@code gpuseg-bench-load} against it. */
final class LoadRig implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path root;
    private final Path errors;
    private final SimulatedMachine machine;
    private CpuSet before;

    LoadRig() throws IOException {
        root = MemoryDirectory.create("gpuseg-load-");
        errors = Files.createTempDirectory("gpuseg-load-messages-");
        machine = new SimulatedMachine(root, errors, false);
    }

    Path errors() {
        return errors;
    }

    Path root() {
        return root;
    }

    /** This thread, until the rig is closed, and what it starts from now on run on these CPUs unless told otherwise. */
    void confine(final CpuSet cpus) {
        before = CpuSet.allowed();
        ThreadControl.pinTo(cpus);
    }

    /**
     * Starts virtual GPU and daemon.
     *
     * @param jvm     options of the daemon's JVM, added to those of this one
     * @param options of {@code gpuseg run}
     * @param gpu     options of the virtual GPU
     */
    void start(final List<String> jvm, final List<String> options, final List<String> gpu) throws InterruptedException {
        machine.startGpu(gpu);
        final List<String> all = new ArrayList<>(List.of("--policy", "fp"));
        all.addAll(options);
        machine.startDaemon(jvm, all);
    }

    Child clients(final List<String> options) {
        return machine.start("clients", clientsCommand(options));
    }

    List<String> clientsCommand(final List<String> options) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-bench-load").toString(),
            "--dir", root.toString()));
        command.addAll(options);
        return command;
    }

    static JsonNode result(final Child clients, final int limitSeconds) throws IOException, InterruptedException,
        TimeoutException {
        final int status = clients.awaitExit(limitSeconds);
        if (clients.lastLine().isEmpty()) {
            throw new IllegalStateException("gpuseg-bench-load ended with status " + status + ": " + clients.said());
        }
        return JSON.readTree(clients.lastLine());
    }

    Child daemon() {
        return machine.daemon();
    }

    JsonNode status() {
        return machine.status();
    }

    /** As {@link #status}, from the journal's thread: the dispatcher is not asked. */
    JsonNode live() {
        return AdminClient.ask(machine.directory(), AdminClient.command("live").put("since", -2));
    }

    /** A figure of {@code /proc/PID/status} of the daemon, in KiB or as it stands; -1 if it is not there. */
    long processFigure(final String name) throws IOException {
        for (final String line : Files.readAllLines(Path.of("/proc/" + daemon().pid() + "/status"))) {
            if (line.startsWith(name + ":")) {
                return Long.parseLong(line.substring(name.length() + 1).strip().split("\\s+")[0]);
            }
        }
        return -1;
    }

    /** Cycle files of clients' queues, as linked for the clients. */
    List<Path> queueFiles() throws IOException {
        return cycles(root.resolve("clients"), "/queue/");
    }

    /** Cycle files of the journal. */
    List<Path> journalFiles() throws IOException {
        return cycles(root.resolve("journal"), "");
    }

    private static List<Path> cycles(final Path below, final String part) throws IOException {
        final List<Path> found = new ArrayList<>();
        if (Files.exists(below)) {
            try (Stream<Path> all = Files.walk(below)) {
                all.filter(p -> p.toString().endsWith(".cq4") && p.toString().contains(part)).forEach(found::add);
            } catch (final java.io.UncheckedIOException e) {
                return found;   // a client left, or a file was deleted, while we looked: the next look sees the rest
            }
        }
        return found;
    }

    /** Ends daemon and GPU in order; the daemon's exit status. */
    int stop() throws InterruptedException, TimeoutException {
        final int status = machine.stopDaemon();
        machine.stopGpu();
        return status;
    }

    /** Sleeps until a time of {@link System#nanoTime}. */
    static void sleepUntil(final long timeNs) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(Math.max(0, timeNs - System.nanoTime()));
    }

    @Override
    public void close() {
        machine.close();
        RuntimeDirectory.deleteTree(root);
        RuntimeDirectory.deleteTree(errors);
        if (before != null) {
            ThreadControl.pinTo(before);
        }
    }
}
