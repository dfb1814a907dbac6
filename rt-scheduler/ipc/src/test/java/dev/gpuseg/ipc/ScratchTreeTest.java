/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class ScratchTreeTest {
    /** No user can delete it. */
    private static final Path FIXED = Path.of("/proc/self/fdinfo");

    @TempDir
    private Path directory;

    private static void failIn(final Path path) {
        try (ScratchTree scratch = new ScratchTree(path)) {
            throw new IllegalStateException("in " + scratch.path());
        }
    }

    @Test
    void shouldReportWhatWentWrongInsideAndNotItsDeletion() {
        assertThrows(UncheckedIOException.class, () -> RuntimeDirectory.deleteTree(FIXED));
        final IllegalStateException first = assertThrows(IllegalStateException.class, () -> failIn(FIXED));
        assertEquals("in " + FIXED, first.getMessage());
        final Throwable second = first.getSuppressed()[0];
        assertTrue(second.getMessage().contains("cannot be deleted"), second::toString);
    }

    @Test
    void shouldDeleteAllBelow() throws Exception {
        final Path tree = Files.createDirectories(directory.resolve("tree/below"));
        assertThrows(IllegalStateException.class, () -> failIn(tree.getParent()));
        assertFalse(Files.exists(tree.getParent()));
        new ScratchTree(tree).close();   // it is gone
    }
}
