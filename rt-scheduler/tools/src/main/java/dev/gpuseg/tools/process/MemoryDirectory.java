/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** New directories in memory. */
public final class MemoryDirectory {
    private static final Path SHARED_MEMORY = Path.of("/dev/shm");

    private MemoryDirectory() {
    }

    /**
     * Makes a directory for this process alone, in {@code /dev/shm} if that can be written, else in the temporary
     * directory.
     *
     * @param prefix of its name
     * @return the directory; the caller deletes it
     * @throws IOException if it cannot be made
     */
    public static Path create(final String prefix) throws IOException {
        return Files.isWritable(SHARED_MEMORY) ? Files.createTempDirectory(SHARED_MEMORY, prefix)
            : Files.createTempDirectory(prefix);
    }
}
