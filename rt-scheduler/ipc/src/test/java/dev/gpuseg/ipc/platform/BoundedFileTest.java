/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class BoundedFileTest {
    @TempDir
    private Path directory;

    @Test
    void shouldRefuseAFileWithoutEndAndNameIt() {
        final String refused = assertThrows(IOException.class,
            () -> BoundedFile.text(Path.of("/dev/zero"), StandardCharsets.UTF_8)).getMessage();
        assertEquals("/dev/zero has more than 16777216 bytes; no such file needs them", refused);
    }

    @Test
    void shouldReadUpToItsLimit() throws Exception {
        final Path file = directory.resolve("long");
        try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
            sparse.setLength(BoundedFile.MAX_BYTES);
            assertEquals(BoundedFile.MAX_BYTES, BoundedFile.text(file, StandardCharsets.ISO_8859_1).length());
            sparse.setLength(BoundedFile.MAX_BYTES + 1);
            assertThrows(IOException.class, () -> BoundedFile.lines(file, StandardCharsets.ISO_8859_1));
        }
    }

    @Test
    void shouldReadWhatTheKernelWritesAndRefuseWhatIsNoText() throws Exception {
        assertTrue(BoundedFile.lines(Path.of("/proc/self/status"), StandardCharsets.UTF_8).contains("Pid:\t"
            + ProcessHandle.current().pid()));
        final Path latin = Files.write(directory.resolve("latin"), new byte[] {'a', '\n', (byte) 0xe4});
        assertEquals("ä", BoundedFile.lines(latin, StandardCharsets.ISO_8859_1).get(1));
        assertThrows(CharacterCodingException.class, () -> BoundedFile.lines(latin, StandardCharsets.UTF_8));
    }
}
