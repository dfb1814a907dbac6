/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

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
import java.util.function.BooleanSupplier;

/** The stand-in of nvgpu, loaded into this process, and programs that work on it. */
public final class TegraRig implements AutoCloseable {
    /** How long a wait that only detects a hang may take. */
    public static final long LIMIT_MS = 120_000;
    private static final String STANDIN_ENV = "GPUSEG_TEGRA_STANDIN";
    private static final Path BUILD =
        Path.of(System.getProperty("gpuseg.root", "."), "rt-scheduler", "native", "build").toAbsolutePath();
    private static final Path FAKE = BUILD.resolve("libgpuseg-tegra-fake.so");
    private static final int PAGE_BYTES = 4096;
    // struct tegra_table
    private static final int FAIL = 4;
    private static final int DISABLES = 8;
    private static final int PREEMPTS = 12;
    private static final int ENABLES = 16;
    private static final int FOREIGN = 20;

    private final Path directory;
    private final MappedByteBuffer table;
    private final List<App> apps = new ArrayList<>();

    /**
     * Loads the stand-in.
     *
     * @param directory where its pages go; an existing empty directory
     */
    public TegraRig(final Path directory) throws IOException {
        assumeTrue(Files.exists(FAKE), "the nvgpu stand-in is not built: make -C rt-scheduler/native");
        this.directory = directory;
        final Path file = directory.resolve("tegra.table");
        Files.write(file, new byte[PAGE_BYTES]);
        table = map(file);
        Function.getFunction("c", "setenv").invokeInt(new Object[] {STANDIN_ENV, file.toString(), 1});
        use();
    }

    /** Calls go to the stand-in from now on. */
    public void use() {
        TegraCalls.DRIVER.use(FAKE.toString());
    }

    /** The directory of the native programs. */
    public static Path build() {
        return BUILD;
    }

    /** From now on every ioctl of this kind fails; 0 for none. */
    public void fail(final int which) {
        table.putInt(FAIL, which);
    }

    /** TSGs disabled so far. */
    public int disables() {
        return table.getInt(DISABLES);
    }

    /** TSGs preempted so far. */
    public int preempts() {
        return table.getInt(PREEMPTS);
    }

    /** TSGs enabled so far. */
    public int enables() {
        return table.getInt(ENABLES);
    }

    @Override
    public void close() {
        for (final App app : apps) {
            app.process.destroyForcibly().onExit().join();
        }
        TegraCalls.DRIVER.use("c");
        assertEquals(0, table.getInt(FOREIGN), "an ioctl that is not in the table reached the driver");
    }

    /** A process that works on the stand-in's GPU without end. */
    public static final class App {
        final Process process;
        final MappedByteBuffer page;

        private App(final Process process, final MappedByteBuffer page) {
            this.process = process;
            this.page = page;
        }

        public int pid() {
            return page.getInt(0);
        }

        public long kernels() {
            return page.getLong(16);
        }

        public ContextRef context(final int id) {
            return new ContextRef(id, 0, pid(), ProcessStatus.startTicks(pid()), "app" + id);
        }

        public boolean advances(final long withinMs) throws InterruptedException {
            final long before = kernels();
            final long limitNs = System.nanoTime() + withinMs * 1_000_000;
            while (System.nanoTime() - limitNs < 0) {
                if (kernels() >= before + 2) {
                    return true;
                }
                Thread.sleep(1);
            }
            return false;
        }
    }

    private static MappedByteBuffer map(final Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            final MappedByteBuffer b = channel.map(FileChannel.MapMode.READ_WRITE, 0, PAGE_BYTES);
            b.order(ByteOrder.nativeOrder());
            return b;
        }
    }

    public App start(final int tsgs, final Path program) throws Exception {
        final Path file = Files.createTempFile(directory, "app", ".page");
        Files.write(file, new byte[PAGE_BYTES]);
        final ProcessBuilder builder =
            withDevice(program.toString(), file.toString(), Integer.toString(tsgs)).inheritIO();
        final MappedByteBuffer page = map(file);
        final App app = new App(builder.start(), page);
        apps.add(app);
        await("application is ready", () -> page.getInt(4) == 1);
        return app;
    }

    public App start(final int tsgs) throws Exception {
        return start(tsgs, BUILD.resolve("gpuseg-tegra-app"));
    }

    public ProcessBuilder withDevice(final String... command) {
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put(STANDIN_ENV, directory.resolve("tegra.table").toString());
        builder.environment().put("LD_PRELOAD", FAKE.toString());
        builder.environment().put("GPUSEG_SHADOW", "/dev/full");
        return builder;
    }

    public static void await(final String what, final BooleanSupplier condition) throws InterruptedException {
        final long limitNs = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - limitNs > 0) {
                throw new IllegalStateException("not within " + LIMIT_MS + " ms: " + what);
            }
            Thread.sleep(1);
        }
    }
}
