/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Function;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Protection;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;

/** The stand-in of KFD, a made-up /sys, and applications that work on them. One directory, one GPU. */
final class AmdRig implements AutoCloseable {
    static final int GPU_ID = 4711;
    static final int GFX_90A = 90_010;
    /** Of a bounded wait: a machine that is busy with other things may start a JVM in a minute. */
    static final long LIMIT_MS = 120_000;
    static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    static final Path FAKE = BUILD.resolve("libgpuseg-amd-fake.so");
    /** A device that hardly any program opens: gpuseg-observer sees what applications repeat on it. */
    static final String SHADOW = "/dev/full";
    static final Path PRELOAD = BUILD.resolve("libgpuseg-preload.so");
    // struct amd_table
    static final int MINOR = 0;
    static final int HOLD_ABI = 4;
    static final int HOLD_DENIED = 8;
    static final int HOLD_REFUSED = 12;
    static final int FAIL = 16;
    static final int N_GPUS = 20;
    static final int GPU_IDS = 24;
    static final int APPLIES = 40;
    static final int HOLDS = 44;
    static final int FOREIGN = 52;
    static final int KICKS = 56;
    static final int DEACTIVATED = 60;
    /** Orders to an application. */
    static final int MAKE = 1;
    static final int RESUME = 2;
    static final int DESTROY = 3;
    // struct amd_delays
    static final int MODE = 0xc000;
    static final int CHANGE_US = 0xc004;
    static final int MODE_NO_HWS = 1;
    static final int MODE_HWS = 2;
    static final int MODE_MES = 3;
    private static final int ANSWER_MS = 10_000;   // on a machine that is busy with other things
    private static final int TABLE_BYTES = 1 << 16;
    private static final int PAGE_BYTES = 4096;
    private static final int SIGCONT = 18;
    private static final int SIGSTOP = 19;
    private static final int LOCK_EX_NB = 6;
    private static final int LOCK_ATTEMPTS = 200;
    private static final String STANDIN_ENV = "GPUSEG_AMD_STANDIN";

    final Path directory;
    final MappedByteBuffer table;
    private final List<App> apps = new ArrayList<>();

    /** A process that works without end; a shell is its parent, so that nothing else in this process waits for it. */
    static final class App implements AutoCloseable {
        private final Process shell;
        private final Path file;
        private final MappedByteBuffer page;

        private App(final Process shell, final Path file, final MappedByteBuffer page) {
            this.shell = shell;
            this.file = file;
            this.page = page;
        }

        /** Where it counts its kernels: 8 bytes at 16. */
        Path file() {
            return file;
        }

        int pid() {
            return page.getInt(0);
        }

        long kernels() {
            return page.getLong(16);
        }

        int signals() {
            return page.getInt(24);
        }

        ContextRef context(final int id) {
            return new ContextRef(id, 0, pid(), ProcessStatus.startTicks(pid()), "app" + id);
        }

        /** Makes another queue. */
        void more() throws InterruptedException {
            order(MAKE);
        }

        void order(final int what) throws InterruptedException {
            page.putInt(12, what);
            await("the application follows order " + what, () -> page.getInt(12) == 0);
        }

        /** Returns when each of its threads is stopped, outside of the stand-in. */
        void suspend() throws InterruptedException {
            AmdRig.suspend(pid(), file.resolveSibling("table"));
        }

        void goOn() {
            ProcessStatus.signal(pid(), SIGCONT);
        }

        /** Waits until it has worked on from here. */
        void mustAdvance(final String when) throws InterruptedException {
            final long before = kernels();
            await("application works " + when, () -> kernels() >= before + 2);
        }

        /** True if it stands still for a while: what has been launched may still end. */
        boolean standsStill() throws InterruptedException {
            for (int attempt = 0; attempt < 50; attempt++) {
                final long before = kernels();
                Thread.sleep(40);
                if (kernels() == before) {
                    return true;
                }
            }
            return false;
        }

        void kill() throws InterruptedException {
            ProcessStatus.signal(pid(), 9);
            shell.waitFor();
        }

        @Override
        public void close() {
            if (pid() != 0) {
                ProcessStatus.signal(pid(), 9);
            }
            shell.destroyForcibly();
        }
    }

    AmdRig(final Path directory) throws IOException {
        assumeTrue(Files.exists(FAKE), "the KFD stand-in is not built: make -C rt-scheduler/native");
        this.directory = directory;
        Files.write(directory.resolve("table"), new byte[TABLE_BYTES]);
        table = map(directory.resolve("table"), TABLE_BYTES);
        table.putInt(MINOR, 17).putInt(HOLD_ABI, 1);
        gpu(0, 0, 0);   // a CPU
        gpu(1, GPU_ID, GFX_90A);
        policy(0);
        Function.getFunction("c", "setenv").invokeInt(new Object[] {STANDIN_ENV, directory.toString(), 1});
        AmdCalls.DRIVER.use(FAKE.toString());
    }

    static MappedByteBuffer map(final Path file, final int bytes) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            final MappedByteBuffer b = channel.map(FileChannel.MapMode.READ_WRITE, 0, bytes);
            b.order(ByteOrder.nativeOrder());
            return b;
        }
    }

    /** A node of the topology; gpuId 0 is a CPU. */
    void gpu(final int node, final int gpuId, final int gfx) throws IOException {
        final Path at = directory.resolve("sys/class/kfd/kfd/topology/nodes/" + node);
        Files.createDirectories(at);
        Files.writeString(at.resolve("gpu_id"), gpuId + "\n");
        Files.writeString(at.resolve("properties"), "cpu_cores_count 0\ngfx_target_version " + gfx + "\n");
        if (gpuId != 0) {
            table.putInt(GPU_IDS + Integer.BYTES * (node - 1), gpuId);
            table.putInt(N_GPUS, Math.max(table.getInt(N_GPUS), node));
        }
    }

    void policy(final int value) throws IOException {
        final Path at = directory.resolve("sys/module/amdgpu/parameters");
        Files.createDirectories(at);
        Files.writeString(at.resolve("sched_policy"), value + "\n");
    }

    /** Every change takes so long, and means what it means in the mode. */
    void delay(final int mode, final int changeUs) throws IOException {
        gpu(1, GPU_ID, mode == MODE_MES ? 110_000 : GFX_90A);
        policy(mode == MODE_NO_HWS ? 2 : 0);
        table.putInt(MODE, mode).putInt(CHANGE_US, changeUs);
    }

    /** The program in a JVM of its own, on the stand-in; see {@link #errors}. */
    Process gpuseg(final int watchdogMs, final Path output, final String... arguments) throws IOException {
        final List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        for (final String flag : ManagementFactory.getRuntimeMXBean().getInputArguments()) {
            if (!flag.startsWith("-agentlib") && !flag.startsWith("-javaagent") && !flag.startsWith("-Xm")) {
                command.add(flag);
            }
        }
        command.addAll(List.of("-Xmx96m", "-XX:+UseSerialGC", "-D" + AmdSysfs.ROOT_PROPERTY + "=" + directory,
            "-D" + PatchedKfdControl.WATCHDOG_PROPERTY + "=" + watchdogMs,
            "-D" + AmdCalls.LIBRARY_PROPERTY + "=" + FAKE, "-D" + AgentControl.ANSWER_PROPERTY + "=" + ANSWER_MS,
            "-cp", System.getProperty("java.class.path"), "dev.gpuseg.tools.cli.Gpuseg"));
        command.addAll(List.of(arguments));
        final ProcessBuilder builder = new ProcessBuilder(command).redirectInput(new File("/dev/null"))
            .redirectOutput(output.toFile()).redirectError(errors(output).toFile());
        environment(builder.environment());
        return builder.start();
    }

    /** Where the errors of a program go whose output goes there. */
    static Path errors(final Path output) {
        return output.resolveSibling(output.getFileName() + ".errors");
    }

    static String read(final Path file) {
        try {
            return Files.readString(file);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    AmdSysfs sysfs() {
        return new AmdSysfs(directory);
    }

    AmdMechanism mechanism(final ControlInterface by, final int watchdogMs) {
        return new AmdMechanism(0, Protection.DEFAULTS, sysfs(), by, watchdogMs);
    }

    void environment(final Map<String, String> variables) {
        variables.put(STANDIN_ENV, directory.toString());
        variables.put("LD_PRELOAD", FAKE.toString());
        variables.put("GPUSEG_SHADOW", SHADOW);
    }

    App start(final int queues) throws Exception {
        return start(queues, GPU_ID, "compute", BUILD.resolve("gpuseg-amd-app"));
    }

    App start(final int queues, final int gpuId, final String kind, final Path program) throws Exception {
        return start(queues, gpuId, kind, program, true);   // the agent must not disturb the other interfaces
    }

    App start(final int queues, final int gpuId, final String kind, final Path program, final boolean agent)
        throws Exception {
        final Path file = Files.createTempFile(directory, "app", ".page");
        Files.write(file, new byte[PAGE_BYTES]);
        final ProcessBuilder builder = new ProcessBuilder("sh", "-c", "\"$@\" & wait", "sh", program.toString(),
            file.toString(), Integer.toString(gpuId), Integer.toString(queues), kind).inheritIO();
        environment(builder.environment());
        if (agent) {
            builder.environment().put("LD_PRELOAD", PRELOAD + ":" + FAKE);
        }
        final App app = new App(builder.start(), file, map(file, PAGE_BYTES));
        apps.add(app);
        await("application is ready", () -> app.page.getInt(4) == 1);
        return app;
    }

    /**
     * Stops a process, each of its threads, at a moment at which it does not hold the stand-in's lock: a kernel stops
     * no process inside a call either, so a stopped process never delays the calls of another.
     */
    static void suspend(final int pid, final Path table) throws InterruptedException {
        await("process " + pid + " is stopped outside of the stand-in", () -> {
            ProcessStatus.signal(pid, SIGSTOP);
            try {
                await("process " + pid + " is stopped", () -> isStopped(pid));
                if (isFree(table)) {
                    return true;
                }
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            ProcessStatus.signal(pid, SIGCONT);
            return false;
        });
    }

    private static boolean isStopped(final int pid) {
        try (Stream<Path> threads = Files.list(Path.of("/proc/" + pid + "/task"))) {
            return threads.allMatch(t -> stateOf(t) == 'T');
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static char stateOf(final Path thread) {
        try {
            final String stat = Files.readString(thread.resolve("stat"), StandardCharsets.ISO_8859_1);
            return stat.charAt(stat.lastIndexOf(')') + 2);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Whether the stand-in's lock (flock of its table) can be had; others that hold it let go of it soon. */
    private static boolean isFree(final Path table) throws InterruptedException {
        final int fd = AmdCalls.DRIVER.open(table.toString());
        try {
            for (int attempt = 0; attempt < LOCK_ATTEMPTS; attempt++) {
                if (Function.getFunction("c", "flock").invokeInt(new Object[] {fd, LOCK_EX_NB}) == 0) {
                    return true;   // and closing lets go of it
                }
                Thread.sleep(1);
            }
            return false;
        } finally {
            AmdCalls.close(fd);
        }
    }

    static void await(final String what, final BooleanSupplier condition) throws InterruptedException {
        final long limitNs = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - limitNs > 0) {
                throw new IllegalStateException("not within " + LIMIT_MS + " ms: " + what);
            }
            Thread.sleep(1);
        }
    }

    @Override
    public void close() {
        apps.forEach(App::close);
        AmdCalls.DRIVER.use("c");
    }
}
