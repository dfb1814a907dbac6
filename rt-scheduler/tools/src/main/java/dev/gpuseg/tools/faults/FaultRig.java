/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.NativePrograms;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.DaemonSettings;
import dev.gpuseg.tools.process.JavaCommand;
import dev.gpuseg.tools.process.RealTime;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.LockSupport;

/**
 * What the campaign plays on: a virtual GPU, the daemon with its watchdog, and clients, all real processes. With a
 * small file system of its own if asked: then all of them live in a mount namespace of the virtual GPU's, and this
 * process looks in through {@code /proc/PID/root}.
 */
final class FaultRig implements AutoCloseable {
    static final int KILL = 9;
    static final int TERM = 15;
    static final int USR2 = 12;
    static final int QUIT = 3;
    static final int CONT = 18;
    static final int STOP = 19;
    /** For clients that stay: longer than any campaign. The task counts at most 4 million jobs. */
    static final List<String> STAYS = List.of("--duration", "16000s");

    /** Tells a hang from a machine that has thirty other things to do, no more: freezes are measured beside. */
    static final int HANG_S = 120;
    private static final long CLIENT_LIMIT_NS = HANG_S * 1_000_000_000L;
    private static final long NS_PER_MS = 1_000_000;
    private static final long ASK_AGAIN_NS = 10 * NS_PER_MS;
    /** So long a JVM that still can may take to print its threads. */
    private static final int DUMP_S = 5;
    private static final int VGPU_PRIORITY = 98;
    private static final int DAEMON_PRIORITY = 80;
    private static final String NO_FILE_SYSTEM = "";
    /** Halves the processor time of a start. Code is slower than the service's after some minutes, not faster. */
    static final String QUICK_COMPILER = "-XX:TieredStopAtLevel=1";
    /** One daemon of so many is started exactly as the service starts it. */
    private static final int AS_THE_SERVICE = 4;

    private final Path base;
    private final Path inside;
    private final Path errors;
    private final Path clockStep;
    private final int periodMs;
    private final boolean realTime;
    private final List<String> enter = new ArrayList<>();
    private final List<Child> children = new ArrayList<>();
    private final Child gpu;
    private final Path outside;
    private final Path journal;
    private final OperationLog operations;
    private List<String> daemonSettings = List.of();
    private final Path classes;
    private final boolean standsBy;
    private Child daemon;
    private Child nextDaemon;
    private Child nextRelease;
    private Ledger ledger;
    private int clients;
    private int daemons;

    /**
     * Starts the virtual GPU.
     *
     * @param base       an existing directory in memory, of this rig alone
     * @param journal    where the journal goes; null: into the runtime directory
     * @param errors     an existing directory for what processes say
     * @param fileSystem size of a file system of its own, like {@code 8m}; empty: none
     * @param periodMs   of the watchdog; 0: none
     */
    FaultRig(final Path base, final Path journal, final Path errors, final String fileSystem, final int periodMs)
        throws IOException, InterruptedException {
        this.base = base;
        this.errors = errors;
        this.periodMs = periodMs;
        inside = base.resolve("run");
        clockStep = base.resolve("clock-step");
        classes = base.resolve("classes");
        standsBy = fileSystem.equals(NO_FILE_SYSTEM);
        realTime = RealTime.isPermitted();
        Files.createDirectories(inside);
        Files.write(clockStep, new byte[Long.BYTES]);
        final List<String> command = new ArrayList<>();
        if (!fileSystem.equals(NO_FILE_SYSTEM)) {
            command.addAll(List.of("unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=" + fileSystem
                + " gpuseg-faults \"$0\" && exec \"$@\"", inside.toString()));
        }
        command.addAll(List.of(NativePrograms.named("gpuseg-vgpu").toString(), "--dir", inside.toString(),
            "--disable-cost", "100us", "--enable-cost", "100us", "--switch-cost", "20us", "--operations",
            base.resolve("operations").toString(), "--summary", "--parent",
            Long.toString(ProcessHandle.current().pid()), "--scheduling", realTime ? "fifo:" + VGPU_PRIORITY
            : "other"));
        gpu = start("vgpu", command);
        gpu.await("ready", HANG_S);
        operations = new OperationLog(base.resolve("operations"));
        if (fileSystem.equals(NO_FILE_SYSTEM)) {
            outside = inside;
        } else {
            outside = Path.of("/proc/" + gpu.pid() + "/root" + inside);
            enter.addAll(List.of("nsenter", "--mount=/proc/" + gpu.pid() + "/ns/mnt", "--"));
        }
        this.journal = journal == null ? inside.resolve("journal") : journal;
    }

    private Child start(final String name, final List<String> command) {
        children.removeIf(child -> !child.isAlive());
        final Child child = Child.start(name, command, errors.resolve(name + ".err"));
        children.add(child);
        return child;
    }

    /** In the rig's name space, with a wall clock that can be stepped. */
    private List<String> prefix() {
        final List<String> command = new ArrayList<>(enter);
        command.addAll(List.of("env", "LD_PRELOAD=" + NativePrograms.named("libgpuseg-clockstep.so"),
            "GPUSEG_CLOCK_STEP=" + clockStep));
        return command;
    }

    /** Lines of the settings file of every daemon from now on, beside those of the campaign. */
    void daemonSettings(final List<String> lines) {
        daemonSettings = lines;
    }

    /** Starts a daemon from nothing and does not wait until it is ready. */
    Child launchDaemon() {
        return launchDaemon(List.of());
    }

    /** The same by way of another program. */
    Child launchDaemon(final List<String> before) {
        final List<String> java = JavaCommand.daemon(daemonArguments());
        if (isQuick(++daemons)) {
            java.add(1, QUICK_COMPILER);
        }
        if (daemons == 1) {
            java.add(1, "-Xlog:class+load:file=" + classes + ":none");
        }
        final List<String> command = prefix();
        command.addAll(before);
        command.addAll(java);
        daemon = start("daemon", command);
        return daemon;
    }

    private static boolean isQuick(final int number) {
        return number % AS_THE_SERVICE != 0;
    }

    private List<String> daemonArguments() {
        final List<String> arguments = new ArrayList<>(List.of("--dir", inside.toString(), "--mechanism", "sim",
            "--policy", "fp", "--journal", journal.toString()));
        final List<String> settings = new ArrayList<>(List.of("warm-up: false", "queue-size: 256KiB",
            periodMs == 0 ? "no-watchdog: true" : "watchdog-period: " + periodMs + "ms"));
        settings.addAll(daemonSettings);
        arguments.addAll(DaemonSettings.write(base.resolve("settings.yaml"), settings));
        if (realTime) {
            arguments.addAll(List.of("--priority", Integer.toString(DAEMON_PRIORITY)));
        }
        return arguments;
    }

    /** A JVM that waits for its command, for the next start: as the service's, or with the quick compiler. */
    private Child standby(final String name, final boolean quick) {
        final List<String> java = JavaCommand.standby(classes);
        if (quick) {
            java.add(1, QUICK_COMPILER);
        }
        final List<String> command = prefix();
        command.addAll(java);
        children.removeIf(child -> !child.isAlive());
        final Child child = Child.startListening(name, command, errors.resolve(name + ".err"));
        children.add(child);
        return child;
    }

    private static void command(final Child standby, final String name, final List<String> arguments) {
        final List<String> lines = new ArrayList<>(List.of(name));
        lines.addAll(arguments);
        lines.add("");
        standby.tell(lines);
    }

    /**
     * Starts a daemon; it accepts clients when this returns. Its JVM has been started before where that was possible:
     * that is time in which nothing is broken.
     */
    void startDaemon() throws InterruptedException {
        if (nextDaemon == null || !nextDaemon.isAlive()) {
            launchDaemon();
        } else {
            daemons++;
            daemon = nextDaemon;
            command(daemon, "run", daemonArguments());
        }
        daemon.await("ready", HANG_S);
        nextDaemon = standsBy ? standby("daemon", isQuick(daemons + 1)) : null;
        if (ledger == null) {
            final Path seen = journal.startsWith(inside) ? outside.resolve(inside.relativize(journal)) : journal;
            ledger = new Ledger(seen);
        }
    }

    /**
     * Starts a task and waits until it is registered; its CPU parts only sleep.
     *
     * @param start   put before the program, for instance {@code unshare}
     * @param options of gpuseg-demo-task, beyond directory, name, progress and duration
     */
    FaultClient client(final String name, final List<String> start, final List<String> options) {
        return client(name, start, NativePrograms.named("gpuseg-demo-task"), base, options);
    }

    /** The same with a copy of the program, and with a directory for its page: for another user. */
    FaultClient client(final String name, final List<String> start, final Path program, final Path pages,
        final List<String> options) {
        final String file = name + "-" + ++clients;
        final Path page = pages.resolve(file);
        final List<String> command = prefix();
        command.addAll(start);
        command.addAll(List.of(program.toString(), "--dir", inside.toString(), "--name", name, "--progress",
            page.toString(), "--duration", "1000s", "--cpu-mode", "sleep"));
        command.addAll(options);
        final FaultClient client = new FaultClient(name, start(file, command), page, CLIENT_LIMIT_NS);
        ledger.add(client.page());
        if (!options.contains("--unmanaged")
            && !client.await(() -> client.page().isManaged() || client.page().jobs() > 0,
            CLIENT_LIMIT_NS / NS_PER_MS)) {
            throw new IllegalStateException(name + " did not register: " + client.process().said());
        }
        return client;
    }

    Child daemon() {
        return daemon;
    }

    /** How many were started, those included that were killed while they started. */
    int daemonsStarted() {
        return daemons;
    }

    Ledger ledger() {
        return ledger;
    }

    OperationLog operations() {
        return operations;
    }

    Path journal() {
        return journal;
    }

    /** The runtime directory, as the rig's processes see it. */
    Path inside() {
        return inside;
    }

    /** The runtime directory, as this process sees it. */
    Path outside() {
        return outside;
    }

    /**
     * What the daemon says of itself. One request has a limit for people, which a busy machine exceeds: asks again.
     *
     * @throws IllegalStateException if the daemon has ended, or does not answer within {@link #HANG_S}
     */
    JsonNode status() {
        final long untilNs = System.nanoTime() + CLIENT_LIMIT_NS;
        while (true) {
            try {
                return AdminClient.ask(RuntimeDirectory.resolve(outside.toString()), AdminClient.command("status"));
            } catch (final IllegalStateException e) {
                if (!daemon.isAlive() || System.nanoTime() - untilNs > 0) {
                    throw e;
                }
            }
            LockSupport.parkNanos(ASK_AGAIN_NS);
        }
    }

    int held() {
        try (HeldFile held = HeldFile.openOrCreate(RuntimeDirectory.resolve(outside.toString()).held())) {
            return held.count();
        }
    }

    void signalDaemon(final int signal) {
        ProcessStatus.signal((int) daemon.pid(), signal);
    }

    /** Kills the daemon and waits until it is reaped. */
    void killDaemon() throws InterruptedException, TimeoutException {
        signalDaemon(KILL);
        daemon.awaitExit(HANG_S);
    }

    /**
     * Kills a daemon that hangs, as systemd does.
     *
     * @return a file that says what its threads did before: by the kernel, twice, and by the JVM if it still could
     */
    Path killHungDaemon() throws IOException, InterruptedException, TimeoutException {
        final List<String> evidence = new ArrayList<>(ThreadStates.of(daemon.pid()));
        signalDaemon(QUIT);
        TimeUnit.SECONDS.sleep(DUMP_S);
        evidence.addAll(ThreadStates.of(daemon.pid()));
        killDaemon();
        evidence.addAll(daemon.allLines());
        return Files.write(errors.resolve("hung-" + daemon.pid() + ".txt"), evidence);
    }

    /** Enables what a dead daemon holds, by the command that the service runs after it. */
    void release() throws InterruptedException, TimeoutException {
        final List<String> arguments = List.of("--dir", inside.toString());
        final Child release;
        if (nextRelease == null || !nextRelease.isAlive()) {
            final List<String> command = new ArrayList<>(enter);
            command.addAll(JavaCommand.release(arguments.toArray(new String[0])));
            release = start("release", command);
        } else {
            release = nextRelease;
            command(release, "release", arguments);
        }
        final int status = release.awaitExit(HANG_S);
        nextRelease = standsBy ? standby("release", true) : null;
        if (status != 0) {
            throw new IllegalStateException("release ended with status " + status);
        }
    }

    /** A clean stop; the exit status. */
    int stopDaemon() throws InterruptedException, TimeoutException {
        daemon.terminate();
        return daemon.awaitExit(HANG_S);
    }

    /** Ends the virtual GPU; what it says of itself. */
    String stopGpu() throws InterruptedException, TimeoutException {
        gpu.terminate();
        gpu.awaitExit(HANG_S);
        return gpu.said();
    }

    /** Lets the wall clock of daemon and clients jump. */
    void stepClock(final long ns) throws IOException {
        try (FileChannel file = FileChannel.open(clockStep, StandardOpenOption.WRITE)) {
            file.write(ByteBuffer.allocate(Long.BYTES).order(ByteOrder.nativeOrder()).putLong(ns).flip(), 0);
        }
    }

    @Override
    public void close() {
        for (int i = children.size() - 1; i >= 0; i--) {
            final Child child = children.get(i);
            if (child.isAlive()) {
                ProcessStatus.signal((int) child.pid(), CONT);
            }
            child.close();
        }
        if (ledger != null) {
            ledger.close();
        }
        try {
            operations.close();
        } catch (final IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }
}
