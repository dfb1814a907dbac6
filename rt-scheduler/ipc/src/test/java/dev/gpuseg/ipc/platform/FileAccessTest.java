/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileAccessTest {
    private static final long MIB = 1 << 20;

    @TempDir
    private Path directory;

    @Test
    void shouldCountWhatASparseFileTakesAndNotItsLength() throws IOException {
        final Path sparse = directory.resolve("sparse");
        try (RandomAccessFile file = new RandomAccessFile(sparse.toFile(), "rw")) {
            file.setLength(88 * MIB);
            file.write(new byte[(int) MIB]);
            file.getFD().sync();   // a file system may allocate late
        }
        assertEquals(88 * MIB, Files.size(sparse));
        final long taken = FileAccess.takenBytes(sparse);
        assertTrue(taken >= MIB && taken < 8 * MIB, taken + " bytes");
        assertThrows(SystemCallException.class, () -> FileAccess.takenBytes(directory.resolve("none")));
    }
}
