/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class WarmUpTest {
    @TempDir
    private Path directory;

    @Test
    void shouldAllocateNothingPerEventOnTheWholePathFromQueueToJournal() {
        final Path scratch = directory.resolve("warm-up");
        final double bytes = WarmUp.run(scratch, 240_000);
        assertTrue(bytes >= 0, "this JVM does not count allocations");
        assertTrue(bytes < 1, bytes + " bytes per record: something allocates on the hot path");
        assertFalse(Files.exists(scratch), "the scratch directory is removed");
    }
}
