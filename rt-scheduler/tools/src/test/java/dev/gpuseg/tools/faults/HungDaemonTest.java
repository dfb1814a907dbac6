/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.process.MemoryDirectory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What the campaign does about a daemon that gives no answer. */
@Timeout(400)
@Tag("long")
class HungDaemonTest {
    /** Longer than one request to a daemon waits for its answer. */
    private static final int SILENT_S = 7;

    @TempDir
    private Path out;

    @Test
    void shouldTakeASlowDaemonForNoHangAndSayWhatAHungOneDid() throws Exception {
        try (ScratchTree base = new ScratchTree(MemoryDirectory.create("gpuseg-hung-"));
            FaultRig rig = new FaultRig(base.path(), out.resolve("journal"), out, "", 100)) {
            rig.startDaemon();
            rig.signalDaemon(FaultRig.STOP);
            CompletableFuture.delayedExecutor(SILENT_S, TimeUnit.SECONDS).execute(() ->
                rig.signalDaemon(FaultRig.CONT));
            assertEquals(rig.daemon().pid(), rig.status().path("daemon").path("pid").asLong());

            final String evidence = Files.readString(rig.killHungDaemon());
            assertFalse(rig.daemon().isAlive());
            assertTrue(evidence.contains("gpuseg-dispatch: "), evidence);      // as the kernel names it
            assertTrue(evidence.contains("\"gpuseg-dispatcher"), evidence);   // as the JVM does
        }
    }
}
