/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class InstanceLockTest {
    private static final long OWN_PID = ProcessHandle.current().pid();

    @TempDir
    private Path directory;

    @Test
    void shouldLetOneDaemonOfAMachineControlADriver() throws IOException {
        final Path first = Path.of("/run/first");
        try (InstanceLock held = InstanceLock.takeForMachine("nvidia", directory, first)) {
            assertNotNull(held);
            final String refused = assertThrows(StartUpException.class,
                () -> InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second"))).getMessage();
            assertTrue(refused.contains("pid " + OWN_PID + ", directory /run/first"), refused);
            assertTrue(refused.contains("`gpuseg stop --dir /run/first`, or use --mechanism gate"), refused);
            InstanceLock.takeForMachine("amd", directory, Path.of("/run/second")).close();
            assertEquals(OWN_PID + " /run/first\n", Files.readString(directory.resolve("nvidia.lock")),
                "who was refused has changed nothing");
        }
        InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second")).close();
    }

    @Test
    void shouldRefuseAlsoWhoCannotReadWhoseItIs() throws IOException {
        try (InstanceLock held = InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/first"))) {
            assertNotNull(held);
            Files.write(directory.resolve("nvidia.lock"), new byte[] {(byte) 0xff, (byte) 0xfe});
            final String refused = assertThrows(StartUpException.class,
                () -> InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second"))).getMessage();
            assertTrue(refused.contains("pid unknown"), refused);
        }
    }

    @Test
    void shouldNotFollowALinkInACommonDirectory() throws IOException {
        final Path target = Files.writeString(directory.resolve("target"), "precious");
        Files.createSymbolicLink(directory.resolve("nvidia.lock"), target);
        assertThrows(IOException.class, () -> InstanceLock.takeForMachine("nvidia", directory, directory));
        assertEquals("precious", Files.readString(target));
    }

    @Test
    void shouldAskForOneDaemonOnlyWhereARealDriverAnswers() {
        assertTrue(MechanismCatalog.get("nvidia").exclusive());
        assertTrue(MechanismCatalog.get("tegra").exclusive());
        assertTrue(MechanismCatalog.get("amd").exclusive());
        for (final String any : new String[] {"sim", "launch", "gate", "observe"}) {
            assertFalse(MechanismCatalog.get(any).exclusive(), any);
        }
    }
}
