/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.tegra.TegraRig;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The daemon on the stand-in of nvgpu; no board. */
@Timeout(300)
class TegraDaemonTest {
    private static final long LIVELY_MS = 30_000;

    @TempDir
    private Path directory;
    private TegraRig rig;

    @BeforeEach
    void start() throws Exception {
        rig = new TegraRig(directory);
    }

    @AfterEach
    void stop() throws Exception {
        if (rig != null) {
            rig.close();
        }
    }

    @Test
    void shouldKeepAnUnmanagedProcessOffWhileARealTimeSegmentIsOpenThroughTheWholeDaemon() throws Exception {
        final TegraRig.App app = rig.start(2);
        final Path where = directory.resolve("run");
        final DaemonConfig config = DaemonConfig.of(RuntimeDirectory.resolve(where.toString()),
            PolicyCatalog.builtIn().standard(), "tegra").warmUpRecords(0).build();
        try (Daemon daemon = Daemon.start(config)) {
            while (rig.disables() < 2) {   // until the scan finds it; the limit of the test is the limit
                final Process segments = new ProcessBuilder(
                    TegraRig.build().resolve("gpuseg-bench-ipc").toString(), "begin",
                    "--dir", where.toString(), "--n", "50", "--warmup", "5", "--pace", "2000000", "--wait", "sleep")
                    .inheritIO().start();
                try {
                    assertTrue(segments.waitFor(TegraRig.LIMIT_MS, TimeUnit.MILLISECONDS));
                    assertEquals(0, segments.exitValue());
                } finally {
                    segments.destroyForcibly();
                }
            }
            TegraRig.await("each is switched out, too", () -> rig.disables() == rig.preempts());
            TegraRig.await("it goes on", () -> {
                final long before = app.kernels();
                LockSupport.parkNanos(10_000_000);
                return app.kernels() > before;
            });
            assertEquals(0, daemon.counters().get(Counter.CYCLE_ERRORS));
        }
        assertTrue(app.advances(LIVELY_MS));
    }
}
