/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.tegra;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Function;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.agent.Counter;
import dev.gpuseg.daemon.agent.Daemon;
import dev.gpuseg.daemon.agent.DaemonConfig;
import dev.gpuseg.daemon.ipc.Abi;
import dev.gpuseg.daemon.ipc.HeldFile;
import dev.gpuseg.daemon.ipc.RuntimeDirectory;
import dev.gpuseg.daemon.mechanism.ContextRef;
import dev.gpuseg.daemon.mechanism.MechanismException;
import dev.gpuseg.daemon.platform.ProcessStatus;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Against the stand-in of nvgpu; no board. */
@Timeout(300)
class TegraMechanismTest {
    private static final ContextRef[] NONE = new ContextRef[0];
    private static final long LIMIT_MS = 20_000;
    private static final long QUIET_MS = 60;
    private static final long LIVELY_MS = 30_000;
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

    @TempDir
    private Path directory;
    private MappedByteBuffer table;
    private TegraMechanism mechanism;
    private final List<App> apps = new ArrayList<>();

    /** A process that works on the stand-in's GPU without end. */
    private static final class App {
        final Process process;
        private final MappedByteBuffer page;

        private App(final Process process, final MappedByteBuffer page) {
            this.process = process;
            this.page = page;
        }

        int pid() {
            return page.getInt(0);
        }

        long kernels() {
            return page.getLong(16);
        }

        ContextRef context(final int id) {
            return new ContextRef(id, 0, pid(), ProcessStatus.startTicks(pid()), "app" + id);
        }

        boolean advances(final long withinMs) throws InterruptedException {
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

    @BeforeEach
    void start() throws Exception {
        assumeTrue(Files.exists(FAKE), "the nvgpu stand-in is not built: make -C rt-scheduler/native");
        final Path file = directory.resolve("tegra.table");
        Files.write(file, new byte[PAGE_BYTES]);
        table = map(file);
        Function.getFunction("c", "setenv").invokeInt(new Object[] {STANDIN_ENV, file.toString(), 1});
        TegraCalls.use(FAKE.toString());
        mechanism = new TegraMechanism(0);
    }

    @AfterEach
    void stop() throws Exception {
        if (mechanism == null) {
            return;
        }
        mechanism.close();
        for (final App app : apps) {
            app.process.destroyForcibly().waitFor();
        }
        TegraCalls.use("c");
        assertEquals(0, table.getInt(FOREIGN), "an ioctl that is not in the table reached the driver");
    }

    private static MappedByteBuffer map(final Path file) throws IOException {
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            final MappedByteBuffer b = channel.map(FileChannel.MapMode.READ_WRITE, 0, PAGE_BYTES);
            b.order(ByteOrder.nativeOrder());
            return b;
        }
    }

    private App start(final int tsgs, final Path program) throws Exception {
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

    private App start(final int tsgs) throws Exception {
        return start(tsgs, BUILD.resolve("gpuseg-tegra-app"));
    }

    private ProcessBuilder withDevice(final String... command) {
        final ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().put(STANDIN_ENV, directory.resolve("tegra.table").toString());
        builder.environment().put("LD_PRELOAD", FAKE.toString());
        return builder;
    }

    private static void await(final String what, final BooleanSupplier condition) throws InterruptedException {
        final long limitNs = System.nanoTime() + LIMIT_MS * 1_000_000;
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - limitNs > 0) {
                throw new IllegalStateException("not within " + LIMIT_MS + " ms: " + what);
            }
            Thread.sleep(1);
        }
    }

    private ContextRef attached(final App app, final int id) throws Exception {
        final ContextRef context = app.context(id);
        mechanism.attach(context);
        await("TSGs of " + context, () -> mechanism.heldPayload(context).length > 0);
        return context;
    }

    private int off(final ContextRef... contexts) {
        return mechanism.apply(contexts, contexts.length, NONE, 0);
    }

    private int on(final ContextRef... contexts) {
        return mechanism.apply(NONE, 0, contexts, contexts.length);
    }

    @Test
    void shouldTakeEveryTsgOfAProcessOffTheRunlistAndBringItBack() throws Exception {
        final App app = start(3);
        final ContextRef c = attached(app, 1);
        assertTrue(app.advances(LIVELY_MS));
        assertEquals(0, off(c));
        assertEquals(ContextRef.Outcome.DONE, c.outcome());
        assertEquals(3, table.getInt(DISABLES));
        assertEquals(3, table.getInt(PREEMPTS), "a kernel that runs must be switched out");
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS), "works while disabled");
        assertEquals(0, off(c), "disabling twice is harmless");
        assertEquals(3, table.getInt(DISABLES));
        assertEquals(0, on(c));
        assertEquals(3, table.getInt(ENABLES));
        assertTrue(app.advances(LIVELY_MS));
    }

    @Test
    void shouldSwitchOneProcessAndLeaveTheOtherAlone() throws Exception {
        final App app = start(1);
        final App other = start(1);
        final ContextRef c = attached(app, 1);
        final ContextRef d = attached(other, 2);
        assertEquals(0, mechanism.apply(new ContextRef[] {c}, 1, new ContextRef[] {d}, 1));
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS));
        assertTrue(other.advances(LIVELY_MS));
    }

    @Test
    void shouldTellOfTsgsOpenedLaterAndSwitchThemToo() throws Exception {
        final App app = start(1);
        final ContextRef c = attached(app, 1);
        assertTrue(mechanism.changed());
        assertFalse(mechanism.changed());
        final int before = mechanism.heldPayload(c).length;
        app.page.putInt(12, 1);
        await("the mechanism tells", mechanism::changed);
        assertEquals(before + Integer.BYTES, mechanism.heldPayload(c).length);
        assertEquals(0, off(c));
        assertEquals(2, table.getInt(DISABLES));
    }

    @Test
    void shouldCallAProcessWithoutTsgsAbsent() {
        final ContextRef self =
            new ContextRef(1, 0, ProcessStatus.pid(), ProcessStatus.startTicks(ProcessStatus.pid()), "self");
        mechanism.attach(self);
        assertEquals(0, off(self));
        assertEquals(ContextRef.Outcome.ABSENT, self.outcome());
        assertEquals(0, mechanism.heldPayload(self).length);
        mechanism.detach(self);
    }

    @Test
    void shouldLetGoOfAProcessThatIsKilledWhileDisabled() throws Exception {
        final App victim = start(2);
        final ContextRef c = attached(victim, 1);
        assertEquals(0, off(c));
        victim.process.destroyForcibly().waitFor();
        await("its descriptors are let go", () -> mechanism.heldPayload(c).length == 0);
        assertEquals(0, on(c));
        assertEquals(ContextRef.Outcome.ABSENT, c.outcome());
    }

    @Test
    void shouldNotTouchAProcessThatGotThePidOfADeadOne() throws Exception {
        final App app = start(1);
        final ContextRef reused = new ContextRef(1, 0, app.pid(), ProcessStatus.startTicks(app.pid()) - 1, "gone");
        mechanism.attach(reused);
        Thread.sleep(QUIET_MS);
        assertEquals(0, off(reused));
        assertEquals(ContextRef.Outcome.ABSENT, reused.outcome());
        assertEquals(0, table.getInt(DISABLES));
    }

    @Test
    void shouldLeaveNothingDisabledWhenTheDriverRefusesAndNameTheError() throws Exception {
        final App app = start(1);
        final ContextRef c = attached(app, 1);
        table.putInt(FAIL, 1);
        assertEquals(1, off(c));
        assertEquals(ContextRef.Outcome.FAILED, c.outcome());
        assertTrue(mechanism.lastError().contains("errno 5"), mechanism.lastError());
        assertTrue(app.advances(LIVELY_MS));
        assertEquals(0, off(c));
        Thread.sleep(5);
        assertFalse(app.advances(QUIET_MS));
    }

    @Test
    void shouldSetTheTimesliceAndPutItBack() throws Exception {
        final App app = start(1);
        final ContextRef c = attached(app, 1);
        final TegraProcess p = (TegraProcess) c.attachment();
        assertTrue(mechanism.setTimeslice(c, 5_000_000));
        assertEquals(5_000, p.tsgs().get(0).timesliceUs());
        assertTrue(mechanism.setTimeslice(c, 2_000_000));
        assertFalse(mechanism.setTimeslice(c, 500_000), "nvgpu takes no less than 1 ms");
        assertTrue(mechanism.lastError().contains("500 us"), mechanism.lastError());
        assertTrue(mechanism.setTimeslice(c, 0));
        assertEquals(1_024, p.tsgs().get(0).timesliceUs());
    }

    @Test
    void shouldBringAProcessBackWhenItIsDetached() throws Exception {
        final App app = start(2);
        final ContextRef c = attached(app, 1);
        assertEquals(0, off(c));
        mechanism.detach(c);
        assertTrue(app.advances(LIVELY_MS));
    }

    @Test
    void shouldAnnounceProcessesThatNobodyAttachedAndNeverTheProtectedOnes() throws Exception {
        final Path xorg = directory.resolve("Xorg");
        Files.copy(BUILD.resolve("gpuseg-tegra-app"), xorg);
        final App display = start(1, xorg);
        final App early = start(1);
        final App managed = start(1);
        attached(managed, 1);
        final List<Integer> found = new CopyOnWriteArrayList<>();
        mechanism.processListener((pid, ticks, name) -> found.add(pid));
        await("the running one is announced", () -> found.contains(early.pid()));
        final App late = start(1);
        await("the new one is announced", () -> found.contains(late.pid()));
        assertEquals(List.of(early.pid(), late.pid()), new ArrayList<>(found));
        assertFalse(found.contains(display.pid()));
    }

    @Test
    void shouldLeaveWhatIsDisabledToTheWatchdogsReleaseWhenItIsGone() throws Exception {
        final App app = start(2);
        final ContextRef c = attached(app, 1);
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve(Abi.HELD_NAME))) {
            held.hold(mechanism.id(), c.pid(), c.pidStartTicks(), 0, 1, System.nanoTime(), mechanism.heldPayload(c));
            off(c);
            mechanism.close();   // descriptors gone, as after a kill
            Thread.sleep(5);
            assertFalse(app.advances(QUIET_MS), "the disabled state must outlive its maker");
            final Process release = withDevice(BUILD.resolve("gpuseg-watchdog").toString(), "--dir",
                directory.toString(), "--release", "--force").inheritIO().start();
            assertTrue(release.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS));
            assertEquals(0, release.exitValue());
            assertTrue(app.advances(LIVELY_MS));
            assertEquals(0, held.count());
        }
    }

    @Test
    void shouldKeepAnUnmanagedProcessOffWhileARealTimeSegmentIsOpenThroughTheWholeDaemon() throws Exception {
        mechanism.close();
        final App app = start(2);
        final Path where = directory.resolve("run");
        final DaemonConfig config = DaemonConfig.defaults(RuntimeDirectory.resolve(where.toString()),
            Policy.named("fp"), "tegra").withoutWarmUp();
        try (Daemon daemon = Daemon.start(config)) {
            for (int attempt = 0; attempt < 20 && table.getInt(DISABLES) < 2; attempt++) {   // until it has been found
                final Process segments = new ProcessBuilder(BUILD.resolve("gpuseg-bench-ipc").toString(), "begin",
                    "--dir", where.toString(), "--n", "50", "--warmup", "5", "--pace", "2000000", "--wait", "sleep")
                    .inheritIO().start();
                assertTrue(segments.waitFor(LIMIT_MS, TimeUnit.MILLISECONDS));
                assertEquals(0, segments.exitValue());
            }
            assertTrue(table.getInt(DISABLES) >= 2, "never taken off: " + table.getInt(DISABLES));
            await("each is switched out, too", () -> table.getInt(DISABLES) == table.getInt(PREEMPTS));
            await("it goes on", () -> {
                final long before = app.kernels();
                LockSupport.parkNanos(10_000_000);
                return app.kernels() > before;
            });
            assertEquals(0, daemon.counters().get(Counter.CYCLE_ERRORS));
        }
        assertTrue(app.advances(LIVELY_MS));
    }

    @Test
    void shouldRefuseToStartWithoutADeviceOrWithASecondGpu() {
        assertTrue(TegraSurvey.verdict().good(), TegraSurvey.verdict().text());
        assertTrue(TegraSurvey.verdict().text().contains("not run on a board"));
        assertThrows(MechanismException.class, () -> new TegraMechanism(1));
        TegraCalls.use("c");
        assumeTrue(!Files.exists(Path.of(TegraDevice.PATH)), "this machine has nvgpu");
        final String text = assertThrows(MechanismException.class, () -> new TegraMechanism(0)).getMessage();
        assertTrue(text.contains(TegraDevice.PATH) && text.contains("--mechanism gate"), text);
        assertFalse(TegraSurvey.verdict().good());
        TegraCalls.use(FAKE.toString());
    }
}
