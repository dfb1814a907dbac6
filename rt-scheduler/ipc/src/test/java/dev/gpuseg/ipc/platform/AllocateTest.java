/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Space for the files of shared memory. Linux 6.1 interrupts its reservation by a stop; 6.18 was not seen to. */
@Timeout(120)
class AllocateTest {
    private static final long BYTES = 64L << 20;
    /** Stops this process and lets it go on, a hundred times. If it is killed in between, nobody lets it go on. */
    private static final String STOPS = "i=0; while [ $i -lt 100 ]; do i=$((i + 1)); kill -STOP $1; kill -CONT $1; "
        + "sleep 0.01; done";

    private Path file;

    @BeforeEach
    void make() throws IOException {
        file = Files.createTempFile(Path.of("/dev/shm"), "gpuseg-test-allocate-", "");
    }

    @AfterEach
    void delete() throws IOException {
        Files.deleteIfExists(file);
    }

    @Test
    void shouldReserveSpaceAlsoWhileTheProcessIsStoppedAndContinued() throws Exception {
        final Process stops = new ProcessBuilder("sh", "-c", STOPS, "stops",
            Long.toString(ProcessHandle.current().pid())).start();
        int reserved = 0;
        while (stops.isAlive()) {
            Files.write(file, new byte[0]);
            Descriptor.allocate(file, BYTES);
            assertEquals(BYTES, Files.size(file));
            reserved++;
        }
        assertTrue(stops.waitFor(20, TimeUnit.SECONDS));
        assertEquals(0, stops.exitValue());
        assertTrue(reserved > 0);
    }
}
