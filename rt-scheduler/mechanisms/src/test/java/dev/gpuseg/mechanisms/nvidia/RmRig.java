/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.jna.Function;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.ContextRef;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** The RM stand-in, applications that use it, and this very JVM as the one that schedules them. */
final class RmRig implements AutoCloseable {
    static final long LIMIT_MS = 120_000;
    /** A device that hardly any program opens: gpuseg-observer sees the ioctls of applications on it. */
    static final String SHADOW = "/dev/full";
    static final String SHADOW_OPTION = "nvidia:1:7:any";
    private static final String STANDIN_ENV = "GPUSEG_RM_STANDIN";
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path FAKE = BUILD.resolve("libgpuseg-rm-fake.so");
    private static final String MPS_PIPE = "CUDA_MPS_PIPE_DIRECTORY";
    private static final int PAGE_BYTES = 4096;

    /** A process that works on the stand-in's GPU without end. */
    static final class App {
        final Process process;
        private final MappedByteBuffer page;
        private final MappedByteBuffer childPage;

        private App(final Process process, final MappedByteBuffer page, final MappedByteBuffer childPage) {
            this.process = process;
            this.page = page;
            this.childPage = childPage;
        }

        /** The process that mode "child" or "exec" forked. */
        int childPid() {
            return page.getInt(64);
        }

        /** What the executed program of mode "exec" shows. */
        App child() {
            return new App(process, childPage, null);
        }

        int pid() {
            return page.getInt(0);
        }

        boolean ready() {
            return page.getInt(4) == 1;
        }

        long kernels() {
            return page.getLong(16);
        }

        long wrong() {
            return page.getLong(24);
        }

        long kernelsOfSecondContext() {
            return page.getLong(56);
        }

        void makeSecondContext() {
            page.putInt(12, 1);
        }

        void stop() {
            page.putInt(8, 1);
            if (childPage != null) {
                childPage.putInt(8, 1);
            }
        }

        ContextRef context(final int id) {
            return new ContextRef(id, 0, pid(), ProcessStatus.startTicks(pid()), "app" + id);
        }
    }

    private final Path directory;
    private final Process standin;
    private final List<App> apps = new ArrayList<>();
    private int scheduleMs;
    private int sliceUs;

    RmRig(final Path directory) throws Exception {
        this(directory, 1);
    }

    RmRig(final Path directory, final int gpus) throws Exception {
        assumeTrue(Files.exists(FAKE), "the RM stand-in is not built: make -C rt-scheduler/native");
        this.directory = directory;
        final String socket = directory.resolve("rm.sock").toString();
        standin = new ProcessBuilder(BUILD.resolve("gpuseg-rm-standin").toString(), socket, "0",
            Integer.toString(gpus))
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        if (!"ready".equals(standin.inputReader().readLine())) {
            throw new IllegalStateException("the RM stand-in did not start at " + socket);
        }
        Function.getFunction("c", "setenv").invokeInt(new Object[] {STANDIN_ENV, socket, 1});
        DriverCalls.DRIVER.use(FAKE.toString());
        if (gpus > 1) {   // as /proc/driver/nvidia/gpus
            for (int gpu = 0; gpu < gpus; gpu++) {
                Files.createDirectories(directory.resolve("gpus/0000:0" + (6 + gpu) + ":00.0"));
            }
            System.setProperty(GpuIndex.GPUS_PROPERTY, directory.resolve("gpus").toString());
        }
    }

    /** Starts an application and waits until it works. */
    App start(final String mode, final boolean capture, final Path program) throws Exception {
        return start(mode, capture, program, 0);
    }

    App start(final String mode, final boolean capture, final Path program, final int gpu) throws Exception {
        return start(mode, capture, program, gpu, null);
    }

    /** A client of the MPS server that has the same pipe directory, or that server. */
    App startWithPipe(final String mode, final Path program, final Path pipe) throws Exception {
        return start(mode, false, program, 0, pipe);
    }

    private App start(final String mode, final boolean capture, final Path program, final int gpu, final Path pipe)
        throws Exception {
        final Path file = Files.createTempFile(directory, "app", ".page");
        Files.write(file, new byte[PAGE_BYTES]);
        final List<String> command = new ArrayList<>(List.of(program.toString(), file.toString(), "2"));
        Path childFile = null;
        if (!mode.isEmpty()) {
            command.add(mode);
        }
        if ("exec".equals(mode)) {
            childFile = Files.createTempFile(directory, "child", ".page");
            Files.write(childFile, new byte[PAGE_BYTES]);
            command.add(childFile.toString());
        }
        final ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
        builder.environment().put(STANDIN_ENV, directory.resolve("rm.sock").toString());
        builder.environment().put("CUDA_VISIBLE_DEVICES", Integer.toString(gpu));
        builder.environment().remove(MPS_PIPE);
        if (pipe != null) {
            builder.environment().put(MPS_PIPE, pipe.toString());
        }
        builder.environment().put("GPUSEG_RM_SHADOW", SHADOW);
        builder.environment().put("GPUSEG_RM_SCHEDULE_MS", Integer.toString(scheduleMs));
        builder.environment().put("GPUSEG_RM_SLICE_US", Integer.toString(sliceUs));
        builder.environment().put("LD_PRELOAD",
            (capture ? BUILD.resolve("libgpuseg-preload.so") + " " : "") + FAKE);
        final App app = new App(builder.start(), map(file), childFile == null ? null : map(childFile));
        apps.add(app);
        await("application is ready", app::ready);
        return app;
    }

    private static MappedByteBuffer map(final Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            final MappedByteBuffer page = channel.map(FileChannel.MapMode.READ_WRITE, 0, PAGE_BYTES);
            page.order(ByteOrder.LITTLE_ENDIAN);
            return page;
        }
    }

    /** Has its channels scheduled so long after it has made them. */
    App startThatSchedulesAfter(final int ms) throws Exception {
        scheduleMs = ms;
        try {
            return start();
        } finally {
            scheduleMs = 0;
        }
    }

    /** Applications that start from now on set their time slice once their channels are scheduled. */
    void setsTimeslice(final int us) {
        sliceUs = us;
    }

    App start() throws Exception {
        return start("", false, BUILD.resolve("gpuseg-rm-app"));
    }

    /** A copy of the application under another name. */
    App startAs(final String name) throws Exception {
        return start("", false, programAs(name));
    }

    Path programAs(final String name) throws IOException {
        final Path copy = directory.resolve(name);
        if (!Files.exists(copy)) {
            Files.copy(BUILD.resolve("gpuseg-rm-app"), copy);
        }
        return copy;
    }

    /** The handles of a context's channels. */
    static int[] channels(final RmContext c) {
        final int[] all = new int[c.channelCount()];
        for (int i = 0; i < all.length; i++) {
            all[i] = c.channel(i);
        }
        return all;
    }

    /** Numbers of the control descriptors of any process. */
    static List<Integer> controlDescriptors(final int pid) {
        final OpenFiles found = new OpenFiles();
        found.addOf(pid);
        return List.copyOf(found.numbers());
    }

    /** Numbers of a process's own control descriptors. */
    static List<Integer> files(final RmProcess process) {
        final OpenFiles found = new OpenFiles();
        process.addFilesTo(found);
        return List.copyOf(found.numbers());
    }

    static Path appProgram() {
        return BUILD.resolve("gpuseg-rm-app");
    }

    static Path program(final String name) {
        return BUILD.resolve(name);
    }

    /** Runs one of the C programs with the stand-in's device. Returns its exit status. */
    int run(final String... command) throws Exception {
        final Process p = withDevice(command).inheritIO().start();
        if (!p.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS)) {
            p.destroyForcibly();
            throw new IllegalStateException(String.join(" ", command) + " did not end");
        }
        return p.exitValue();
    }

    ProcessBuilder withDevice(final String... command) {
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.command().set(0, BUILD.resolve(command[0]).toString());
        builder.environment().put(STANDIN_ENV, directory.resolve("rm.sock").toString());
        builder.environment().put("LD_PRELOAD", FAKE.toString());
        return builder;
    }

    /** What the stand-in counted. */
    JsonNode stats() throws Exception {
        final Process p = withDevice("gpuseg-rm", "stats").start();
        final String line = p.inputReader().readLine();
        p.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS);
        return new ObjectMapper().readTree(line);
    }

    /** What a late attach finds of a process. */
    JsonNode list(final int pid) throws Exception {
        final Process p = withDevice("gpuseg-rm", "list", Integer.toString(pid)).start();
        final String line = p.inputReader().readLine();
        p.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS);
        return new ObjectMapper().readTree(line);
    }

    /** The time slice of its compute work. */
    long timesliceUs(final App app) {
        try {
            for (final JsonNode tsg : list(app.pid()).path("tsgs")) {
                if (tsg.path("gr0").asBoolean()) {
                    return tsg.path("timeslice_us").asLong();
                }
            }
        } catch (final Exception e) {
            throw new IllegalStateException(e);
        }
        throw new AssertionError("no compute work of pid " + app.pid());
    }

    /** The next controls of a command answer with a status and do nothing. */
    void inject(final RmCommand command, final int count, final int status) throws Exception {
        run("gpuseg-rm", "inject", "0x" + Integer.toHexString(command.number()), Integer.toString(count),
            Integer.toString(status));
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

    /** Whether an application finishes kernels now: waits for two more, at most the given time. */
    static boolean advances(final App app, final long withinMs) throws InterruptedException {
        final long before = app.kernels();
        final long limitNs = System.nanoTime() + withinMs * 1_000_000;
        while (System.nanoTime() - limitNs < 0) {
            if (app.kernels() >= before + 2) {
                return true;
            }
            Thread.sleep(1);
        }
        return false;
    }

    @Override
    public void close() throws IOException {
        for (final App app : apps) {
            app.stop();
            app.process.descendants().forEach(ProcessHandle::destroyForcibly);
            app.process.destroyForcibly();
        }
        standin.destroy();
        try {
            standin.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        DriverCalls.DRIVER.use("c");
        System.clearProperty(GpuIndex.GPUS_PROPERTY);
    }
}
