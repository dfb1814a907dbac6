/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(30)
class SharedDescriptorTest {
    @TempDir
    private Path directory;

    @Test
    void shouldStayOpenUntilTheLastUseEnds() throws Exception {
        final Path file = Files.createTempFile(directory, "used", "").toRealPath();
        final SharedDescriptor descriptor = new SharedDescriptor(Descriptor.openToWrite(file));
        assertTrue(descriptor.enter());
        assertTrue(descriptor.enter());
        descriptor.close();
        assertFalse(descriptor.enter(), "a new use");
        descriptor.leave();
        assertEquals(file, Files.readSymbolicLink(Descriptor.path(descriptor.fd())));
        descriptor.leave();
        try (TakenNumbers files = new TakenNumbers(directory)) {
            assertFalse(descriptor.enter());
            descriptor.close();
            files.assertUntouched();
        }
    }

    @Test
    void shouldSignalNoOtherFileAfterTheClose() throws Exception {
        final EventFd bell = new EventFd();
        bell.signal();
        assertEquals(1, bell.drain());
        bell.close();
        try (TakenNumbers files = new TakenNumbers(directory)) {
            bell.signal();
            bell.close();
            files.assertUntouched();
        }
    }
}
