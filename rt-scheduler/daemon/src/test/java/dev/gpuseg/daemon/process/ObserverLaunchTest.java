/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
class ObserverLaunchTest {
    private static final long NEVER_MS = 600_000;

    @TempDir
    private Path directory;

    @Test
    void shouldNotWaitWhereNoServiceIs() {
        assertFalse(ObserverLaunch.awaitService(directory.resolve("none/socket"), NEVER_MS));
    }

    @Test
    void shouldNotWaitLongerThanAllowedForAServiceThatDoesNotStart() {
        assertFalse(ObserverLaunch.awaitService(directory.resolve("socket"), 1));
    }

    /** Containers of a pod start in any order. */
    @Test
    void shouldWaitForTheSocketOfAServiceThatStarts() throws Exception {
        final Path socket = directory.resolve("socket");
        final CompletableFuture<Boolean> there =
            CompletableFuture.supplyAsync(() -> ObserverLaunch.awaitService(socket, NEVER_MS));
        TimeUnit.MILLISECONDS.sleep(100);
        assertFalse(there.isDone());
        Files.createFile(socket);
        assertTrue(there.get());
    }
}
