/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.process.Daemon;
import dev.gpuseg.daemon.process.DaemonConfig;
import dev.gpuseg.ipc.NativeTool;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.amd.AmdRig.App;
import dev.gpuseg.tools.process.DaemonSettings;
import java.io.BufferedReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The whole daemon on the stand-in of KFD, and what is left when it is killed; no AMD hardware. */
@Timeout(600)
@Tag("long")
class AmdSystemTest {
    @TempDir
    private Path directory;
    private AmdRig rig;
    private final List<Process> started = new ArrayList<>();

    @BeforeEach
    void start() throws Exception {
        assumeTrue(ProcessStatus.effectiveUid() == 0, "tracing other processes needs root here");
        rig = new AmdRig(directory);
        System.setProperty(AmdSysfs.ROOT_PROPERTY, directory.toString());
        System.setProperty(PatchedKfdControl.WATCHDOG_PROPERTY, "10000");
    }

    @AfterEach
    void stop() throws Exception {
        System.clearProperty(AmdSysfs.ROOT_PROPERTY);
        System.clearProperty(PatchedKfdControl.WATCHDOG_PROPERTY);
        for (final Process p : started) {
            p.destroyForcibly().waitFor();
        }
        if (rig != null) {
            rig.close();
            assertEquals(0, rig.table.getInt(AmdRig.FOREIGN), "an ioctl that is not in the table reached the driver");
        }
    }

    private void only(final ControlInterface by) {
        rig.table.putInt(AmdRig.HOLD_ABI, by == ControlInterface.KFD ? 1 : 0);
    }

    /** How often a process was disabled, by any interface. */
    private int taken() {
        return rig.table.getInt(AmdRig.HOLDS) + rig.table.getInt(AmdRig.DEACTIVATED);
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldDisableAProcessThatRanBeforeWhileARealTimeSegmentIsOpen(final ControlInterface by) throws Exception {
        only(by);
        final App app = rig.start(2);
        final Path where = directory.resolve("run");
        final DaemonConfig config = DaemonConfig.of(RuntimeDirectory.resolve(where.toString()),
            PolicyCatalog.builtIn().standard(), "amd").warmUpRecords(0).build();
        try (Daemon daemon = Daemon.start(config)) {
            while (taken() == 0) {   // until it has been found; the limit of the test is the limit
                final Process segments = new ProcessBuilder(AmdRig.BUILD.resolve("gpuseg-bench-ipc").toString(),
                    "begin", "--dir", where.toString(), "--n", "50", "--warmup", "5", "--pace", "2000000", "--wait",
                    "sleep").inheritIO().start();
                started.add(segments);
                assertTrue(segments.waitFor(AmdRig.LIMIT_MS, TimeUnit.MILLISECONDS));
                assertEquals(0, segments.exitValue());
            }
            app.mustAdvance("between segments");
            assertEquals(0, daemon.counters().get(Counter.CYCLE_ERRORS));
        }
        app.mustAdvance("after the daemon's stop");
    }

    @ParameterizedTest
    @EnumSource(ControlInterface.class)
    void shouldLeaveNoProcessDisabledWhenTheDaemonIsKilled(final ControlInterface by) throws Exception {
        only(by);
        final App app = rig.start(2);
        final Path where = directory.resolve("run");
        final Process daemon = daemon(where);
        final Process client = client(where);
        AmdRig.await("it is disabled", () -> taken() > 0);
        assertTrue(app.standsStill());
        assertTrue(client.isAlive(), "the segment must still be open");
        daemon.destroyForcibly().waitFor();
        app.mustAdvance("after the daemon's death");
    }

    @ParameterizedTest
    @EnumSource(value = ControlInterface.class, names = {"KFD", "AGENT"})
    void shouldLeaveNoProcessDisabledWhenTheDaemonIsStoppedAsAWhole(final ControlInterface by) throws Exception {
        only(by);
        final App app = rig.start(1);
        final Path where = directory.resolve("run");
        final Process daemon = daemon(where);
        client(where);
        AmdRig.await("it is disabled", () -> taken() > 0);
        assertTrue(app.standsStill());
        AmdRig.suspend((int) daemon.pid(), directory.resolve("table"));
        app.mustAdvance("while the daemon is stopped");
        ProcessStatus.signal((int) daemon.pid(), 18);
        final int before = taken();
        AmdRig.await("the daemon disables it again", () -> taken() > before);
    }

    @Test
    void shouldHoldAgainWhenTheDaemonRestarts() throws Exception {
        only(ControlInterface.AGENT);
        final App app = rig.start(1);
        final Path where = directory.resolve("run");
        final Process first = daemon(where);
        client(where);
        AmdRig.await("it is disabled", () -> taken() > 0);
        first.destroyForcibly().waitFor();
        app.mustAdvance("without a daemon");
        final int before = taken();
        daemon(directory.resolve("next"));
        client(directory.resolve("next"));
        AmdRig.await("the next daemon disables it", () -> taken() > before);
        assertTrue(app.standsStill());
    }

    @Test
    void shouldGrantAndCountWhenAnApplicationDoesNotAnswer() throws Exception {
        only(ControlInterface.AGENT);
        final App app = rig.start(1);
        final App stopped = rig.start(1);
        final Path where = directory.resolve("run");
        final DaemonConfig config = DaemonConfig.of(RuntimeDirectory.resolve(where.toString()),
            PolicyCatalog.builtIn().standard(), "amd").warmUpRecords(0).build();
        try (Daemon daemon = Daemon.start(config)) {
            stopped.suspend();
            client(where);
            AmdRig.await("the one that answers is disabled", () -> taken() > 0);
            assertTrue(app.standsStill());
            AmdRig.await("the other is counted", () -> daemon.counters().get(Counter.MECHANISM_ERRORS) > 0
                && daemon.counters().get(Counter.GRANTS_UNENFORCED) > 0);
            assertEquals(0, daemon.counters().get(Counter.CYCLE_ERRORS));
            stopped.goOn();
            AmdRig.await("it is disabled when it goes on", () -> taken() > 1);
        }
        app.mustAdvance("after the daemon's stop");
        stopped.mustAdvance("after the daemon's stop");
    }

    private Process daemon(final Path where) throws Exception {
        final String settings = DaemonSettings.write(directory.resolve("settings.yaml"), "warm-up: false").get(1);
        final Process daemon = rig.gpuseg(1_000, directory.resolve("daemon.out"), "run", "--dir", where.toString(),
            "--mechanism", "amd", "--policy", "fp", "--config", settings);
        started.add(daemon);
        AmdRig.await("the daemon answers", () -> RuntimeDirectory.resolve(where.toString()).socket().toFile().exists()
            || !daemon.isAlive());
        assertTrue(daemon.isAlive(), () -> "the daemon does not run: " + AmdRig.read(AmdRig.errors(
            directory.resolve("daemon.out"))));
        return daemon;
    }

    /** Opens segments of 2 s, one after the other. */
    private Process client(final Path where) throws Exception {
        final Path root = NativeTool.root();
        final Path program = directory.resolve("task_client");
        NativeTool.run(60, "gcc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-I" + root.resolve("segment-api/include"),
            root.resolve("rt-scheduler/tools/src/test/c/task_client.c").toString(),
            root.resolve("segment-api/build/libgpuseg.a").toString(), "-lpthread", "-o", program.toString());
        final ProcessBuilder builder = new ProcessBuilder(program.toString(), where.toString(),
            "open:rt:50:0:0:0:0", "segments:rt:1000:2000000").redirectErrorStream(true);
        final Process client = builder.start();
        started.add(client);
        try (BufferedReader reader = client.inputReader()) {
            final String opened = reader.readLine();
            assertTrue(opened != null && opened.startsWith("open rt 0"), "client: " + opened);
        }
        return client;
    }
}
