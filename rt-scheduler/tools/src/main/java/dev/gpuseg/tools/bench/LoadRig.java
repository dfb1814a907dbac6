/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.daemon.dispatch.NativePrograms;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.CpuSet;
import dev.gpuseg.ipc.platform.ThreadControl;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.JavaCommand;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;

/** A virtual GPU, a daemon in a JVM of its own, and {@code gpuseg-bench-load} against it. */
public final class LoadRig implements AutoCloseable {
    private static final int START_LIMIT_S = 60;
    private static final int END_LIMIT_S = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path root;
    private final Path errors;
    private final List<Child> children = new ArrayList<>();
    private Child gpu;
    private Child daemon;
    private CpuSet before;

    public LoadRig() throws IOException {
        final Path memory = Path.of("/dev/shm");
        root = Files.isWritable(memory) ? Files.createTempDirectory(memory, "gpuseg-load-")
            : Files.createTempDirectory("gpuseg-load-");
        errors = Files.createTempDirectory("gpuseg-load-messages-");
    }

    public Path errors() {
        return errors;
    }

    public Path root() {
        return root;
    }

    /** This thread, until the rig is closed, and what it starts from now on run on these CPUs unless told otherwise. */
    public void confine(final CpuSet cpus) {
        before = CpuSet.allowed();
        ThreadControl.pinTo(cpus);
    }

    /**
     * Starts virtual GPU and daemon.
     *
     * @param jvm     options of the daemon's JVM, added to those of this one
     * @param options of {@code gpuseg run}
     */
    public void start(final List<String> jvm, final List<String> options) throws InterruptedException {
        gpu = Child.start("gpuseg-vgpu", List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
            root.toString(), "--parent", Long.toString(ProcessHandle.current().pid())), errors.resolve("vgpu"));
        children.add(gpu);
        gpu.await("ready", START_LIMIT_S);
        final List<String> arguments = new ArrayList<>(List.of("--dir", root.toString(), "--mechanism", "sim",
            "--policy", "fp"));
        arguments.addAll(options);
        final List<String> command = JavaCommand.daemon(arguments);
        command.addAll(command.indexOf("-cp"), jvm);   // the last one of two that disagree wins
        daemon = Child.start("gpuseg run", command, errors.resolve("daemon"));
        children.add(daemon);
        daemon.await("ready", START_LIMIT_S);
    }

    public Child clients(final List<String> options) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-bench-load").toString(),
            "--dir", root.toString()));
        command.addAll(options);
        final Child clients = Child.start("gpuseg-bench-load", command, errors.resolve("clients"));
        children.add(clients);
        return clients;
    }

    public static JsonNode result(final Child clients, final int limitSeconds) throws IOException, InterruptedException,
        TimeoutException {
        final int status = clients.awaitExit(limitSeconds);
        if (clients.lastLine().isEmpty()) {
            throw new IllegalStateException("gpuseg-bench-load ended with status " + status + ": " + clients.said());
        }
        return JSON.readTree(clients.lastLine());
    }

    public Child daemon() {
        return daemon;
    }

    public JsonNode status() {
        return AdminClient.ask(RuntimeDirectory.resolve(root.toString()), AdminClient.command("status"));
    }

    /** As {@link #status}, from the journal's thread: the dispatcher is not asked. */
    JsonNode live() {
        return AdminClient.ask(RuntimeDirectory.resolve(root.toString()), AdminClient.command("live").put("since", -2));
    }

    /** A figure of {@code /proc/PID/status} of the daemon, in KiB or as it stands; -1 if it is not there. */
    long processFigure(final String name) throws IOException {
        for (final String line : Files.readAllLines(Path.of("/proc/" + daemon.pid() + "/status"))) {
            if (line.startsWith(name + ":")) {
                return Long.parseLong(line.substring(name.length() + 1).strip().split("\\s+")[0]);
            }
        }
        return -1;
    }

    /** Cycle files of clients' queues, as linked for the clients. */
    public List<Path> queueFiles() throws IOException {
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
    public int stop() throws InterruptedException, TimeoutException {
        daemon.terminate();
        final int status = daemon.awaitExit(END_LIMIT_S);
        gpu.terminate();
        gpu.awaitExit(END_LIMIT_S);
        return status;
    }

    /** Sleeps until a time of {@link System#nanoTime}. */
    public static void sleepUntil(final long timeNs) throws InterruptedException {
        TimeUnit.NANOSECONDS.sleep(Math.max(0, timeNs - System.nanoTime()));
    }

    @Override
    public void close() {
        for (int i = children.size() - 1; i >= 0; i--) {
            children.get(i).close();
        }
        RuntimeDirectory.deleteTree(root);
        RuntimeDirectory.deleteTree(errors);
        if (before != null) {
            ThreadControl.pinTo(before);
        }
    }
}
