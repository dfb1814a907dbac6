/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.mechanisms.MechanismCatalog;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
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
            assertEquals(OWN_PID + " /run/first\n", Files.readString(directory.resolve("nvidia.daemon.lock")),
                "who was refused has changed nothing");
        }
        InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second")).close();
    }

    @Test
    void shouldRefuseToMeasureBesideADaemon() throws IOException {
        try (InstanceLock held = InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/first"))) {
            assertNotNull(held);
            assertEquals("a daemon (pid " + OWN_PID + ", directory /run/first) controls the GPUs of this machine with "
                + "mechanism nvidia; stop it with `gpuseg stop --dir /run/first`", assertThrows(
                    IllegalStateException.class, () -> InstanceLock.requireNoDaemon("nvidia", directory)).getMessage());
        }
        InstanceLock.requireNoDaemon("nvidia", directory);
        InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second")).close();
    }

    @Test
    void shouldRefuseAlsoWhoCannotReadWhoseItIs() throws IOException {
        try (InstanceLock held = InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/first"))) {
            assertNotNull(held);
            Files.write(directory.resolve("nvidia.daemon.lock"), new byte[] {(byte) 0xff, (byte) 0xfe});
            final String refused = assertThrows(StartUpException.class,
                () -> InstanceLock.takeForMachine("nvidia", directory, Path.of("/run/second"))).getMessage();
            assertTrue(refused.contains("pid unknown"), refused);
        }
    }

    /** Whoever may read a file can lock it, and waits for the daemon to die. */
    @Test
    void shouldStartAlthoughAStrangerHasLockedWhatAnEarlierReleaseLetHimRead() throws Exception {
        final Path former = Files.writeString(directory.resolve("lock"), "1\n");
        final Process reader = lock(former, "0");
        try (InstanceLock held = InstanceLock.take(directory)) {
            assertNotNull(held);
            assertEquals("rw-------", PosixFilePermissions.toString(Files.getPosixFilePermissions(
                directory.resolve("daemon.lock"))));
            assertFalse(Files.exists(former));
        } finally {
            reader.destroyForcibly().waitFor();
        }
    }

    @Test
    void shouldNotStartBesideADaemonOfAnEarlierRelease() throws Exception {
        final Process daemon = lock(Files.writeString(directory.resolve("lock"), "4711\n"), "1");
        try {
            assertTrue(assertThrows(StartUpException.class, () -> InstanceLock.take(directory)).getMessage()
                .contains("(pid 4711)"));
        } finally {
            daemon.destroyForcibly().waitFor();
        }
        InstanceLock.take(directory).close();
    }

    /** Another process that has locked a file, since a process does not see its own locks. */
    private static Process lock(final Path file, final String exclusive) throws IOException {
        final Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-cp", System.getProperty("java.class.path"), LockedFile.class.getName(), file.toString(), exclusive)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        assertEquals('y', process.getInputStream().read(), "it has the lock");
        return process;
    }

    @Test
    void shouldNotFollowALinkInACommonDirectory() throws IOException {
        final Path target = Files.writeString(directory.resolve("target"), "precious");
        Files.createSymbolicLink(directory.resolve("nvidia.daemon.lock"), target);
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
