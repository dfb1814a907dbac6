/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Empty files of a test that take the lowest free descriptor numbers, those that were just closed among them. */
final class TakenNumbers implements AutoCloseable {
    private static final int COUNT = 64;

    private final Path file;
    private final int[] numbers = new int[COUNT];

    TakenNumbers(final Path directory) throws IOException {
        file = Files.createTempFile(directory, "taken", "");
        for (int i = 0; i < COUNT; i++) {
            numbers[i] = Descriptor.openToWrite(file);
        }
    }

    /** Nothing was written to any of them, and each is open. */
    void assertUntouched() throws IOException {
        assertEquals(0, Files.size(file), "bytes written");
        for (final int number : numbers) {
            assertEquals(file.toRealPath(), Files.readSymbolicLink(Descriptor.path(number)));
        }
    }

    @Override
    public void close() {
        for (final int number : numbers) {
            Descriptor.close(number);
        }
    }
}
