/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.daemon.launch.RunCommand;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeoutException;

/**
 * A virtual GPU, a daemon and tasks, which are all real processes and meet in one runtime directory.
 * {@link #close} kills those that still run, and may be called by any thread; the rest is not thread-safe. If this
 * process is killed, the virtual GPU and the daemon end by themselves.
 */
public final class SimulatedMachine implements AutoCloseable {
    private static final int START_LIMIT_S = 120;
    private static final int END_LIMIT_S = 30;
    private static final int GPU_PRIORITY = 98;
    private static final int DAEMON_PRIORITY = 90;

    private final RuntimeDirectory directory;
    private final Path errors;
    private final boolean realTime;
    private final List<Child> children = new CopyOnWriteArrayList<>();
    private Child gpu;
    private boolean closed;
    private Child daemon;

    /**
     * Nothing runs yet.
     *
     * @param root     runtime directory
     * @param errors   existing directory, gets the standard error of each process as NAME.err
     * @param realTime run the virtual GPU and the daemon under SCHED_FIFO where that is permitted, so that other work
     *                 on this machine does not delay them
     */
    public SimulatedMachine(final Path root, final Path errors, final boolean realTime) {
        directory = RuntimeDirectory.resolve(root.toString());
        this.errors = errors;
        this.realTime = realTime;
    }

    /** Where its processes meet. */
    public RuntimeDirectory directory() {
        return directory;
    }

    /**
     * Starts the virtual GPU.
     *
     * @param options of gpuseg-vgpu beyond directory and parent
     * @return the process, which is ready
     */
    public Child startGpu(final List<String> options) throws InterruptedException {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir",
            directory.root().toString(), "--parent", Long.toString(ProcessHandle.current().pid())));
        if (realTime) {
            command.addAll(List.of("--scheduling", "fifo:" + GPU_PRIORITY));
        }
        command.addAll(options);
        gpu = start("vgpu", command);
        gpu.await("ready", START_LIMIT_S);
        return gpu;
    }

    /**
     * Starts the virtual GPU.
     *
     * @param options of gpuseg-vgpu beyond directory and parent
     * @return the process, which is ready
     */
    public Child startGpu(final String... options) throws InterruptedException {
        return startGpu(Arrays.asList(options));
    }

    /**
     * Starts a daemon.
     *
     * @param jvm     options of its JVM beyond those that every daemon has; of two that disagree these win
     * @param options of {@code gpuseg run} beyond directory and mechanism
     * @return the process, which is ready
     */
    public Child startDaemon(final List<String> jvm, final List<String> options) throws InterruptedException {
        final List<String> run = new ArrayList<>(List.of("--dir", directory.root().toString(), "--mechanism", "sim"));
        if (realTime && RealTime.isPermitted()) {
            run.addAll(List.of("--priority", Integer.toString(DAEMON_PRIORITY)));
        }
        run.addAll(options);
        final List<String> command = JavaCommand.daemon(run);
        command.addAll(command.indexOf("-cp"), jvm);
        command.add(command.indexOf("-cp"), "-D" + RunCommand.PARENT_PROPERTY + "=" + ProcessHandle.current().pid());
        daemon = start("daemon", command);
        daemon.await("ready", START_LIMIT_S);
        return daemon;
    }

    /** Starts a daemon, with options beyond directory and mechanism. It is ready when this returns. */
    public Child startDaemon(final String... options) throws InterruptedException {
        return startDaemon(List.of(), Arrays.asList(options));
    }

    /** Starts a task with options beyond directory and name; does not wait for it. */
    public Child startTask(final String name, final List<String> options) {
        final List<String> command = new ArrayList<>(List.of(NativePrograms.named("gpuseg-demo-task").toString(),
            "--dir", directory.root().toString(), "--name", name));
        command.addAll(options);
        return start(name, command);
    }

    /** Starts another process; the name is for messages and for the file of its standard error. */
    public synchronized Child start(final String name, final List<String> command) {
        if (closed) {
            throw new IllegalStateException(name + " is not started: the machine was closed");
        }
        final Child child = Child.start(name, command, errors.resolve(name.replaceAll("[^A-Za-z0-9._-]", "_")
            + ".err"));
        children.add(child);
        return child;
    }

    /** What was started, in this order: processes, some of which may have ended. */
    public List<Child> processes() {
        return List.copyOf(children);
    }

    /** The daemon that was started last: the process, null before the first start. */
    public Child daemon() {
        return daemon;
    }

    /** Asks the daemon for its status. */
    public JsonNode status() {
        return AdminClient.ask(directory, AdminClient.command("status"));
    }

    /** Contexts that are disabled now, or that a daemon left disabled. */
    public int held() {
        try (HeldFile held = HeldFile.openOrCreate(directory.held())) {
            return held.count();
        }
    }

    /**
     * Stops the daemon and waits for its end.
     *
     * @return exit status
     * @throws TimeoutException if it does not end
     */
    public int stopDaemon() throws InterruptedException, TimeoutException {
        daemon.terminate();
        return daemon.awaitExit(END_LIMIT_S);
    }

    /**
     * Stops the virtual GPU and waits for its end.
     *
     * @throws TimeoutException if it does not end
     */
    public void stopGpu() throws InterruptedException, TimeoutException {
        gpu.terminate();
        gpu.awaitExit(END_LIMIT_S);
    }

    @Override
    public synchronized void close() {
        closed = true;
        for (int i = children.size() - 1; i >= 0; i--) {
            children.get(i).close();
        }
        children.clear();
    }
}
