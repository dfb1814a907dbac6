/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Descriptors of a process that have the name of a device, and of files that are one. */
@Timeout(60)
class DeviceFileTest {
    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);
    }

    private static final Path STANDIN = Path.of(System.getProperty("gpuseg.root", "."),
        "rt-scheduler/native/build/libgpuseg-rm-fake.so").toAbsolutePath();
    private static final DriverLibrary LIBC = new DriverLibrary("gpuseg.test.library", new Functions());
    private static final String ZERO = "/dev/zero";
    private static final int ZERO_MINOR = 5;

    private final DeviceFile zero = DeviceFile.ofDriver(LIBC, ZERO_MINOR, "none", "mem");
    @TempDir
    private Path directory;
    private Process process;
    private int pid;
    private int pidfd = -1;

    private void start(final Path input) throws Exception {
        process = new ProcessBuilder("sleep", "60").redirectInput(input.toFile()).start();
        pid = (int) process.pid();
        while (!"sleep".equals(ProcessStatus.commandName(pid))) {
            Thread.sleep(1);   // the launcher has not become the program yet
        }
        pidfd = SystemCalls.pidfdOpen(pid);
    }

    @AfterEach
    void stop() throws Exception {
        process.destroyForcibly().waitFor();
        SystemCalls.closeOnce(pidfd);
    }

    @Test
    void shouldKnowADeviceByTheNumberOfItsDriver() throws Exception {
        start(Path.of(ZERO));
        assertTrue(zero.leadsTo(pid, 0, ZERO));
        final int fd = zero.duplicate(pid, pidfd, 0, ZERO);
        assertTrue(fd >= 0, () -> "errno " + -fd);
        SystemCalls.closeOnce(fd);
        assertTrue(DeviceFile.likeOwn(LIBC).leadsTo(pid, 0, ZERO));
    }

    @Test
    void shouldNotTakeAnotherDeviceOfTheSameDriver() throws Exception {
        start(Path.of("/dev/null"));
        assertFalse(zero.leadsTo(pid, 0, ZERO));
        assertFalse(DeviceFile.likeOwn(LIBC).leadsTo(pid, 0, ZERO));
        assertEquals(DeviceFile.FOREIGN, zero.duplicate(pid, pidfd, 0, ZERO));
    }

    @Test
    void shouldNotTakeAFileWithTheNameOfADeviceAndCountIt() throws Exception {
        start(Files.createFile(directory.resolve("zero")));
        final long before = DeviceFile.foreignSeen();
        assertFalse(zero.leadsTo(pid, 0, ZERO));
        assertEquals(before + 1, DeviceFile.foreignSeen());
        assertEquals(DeviceFile.FOREIGN, zero.duplicate(pid, pidfd, 0, ZERO));
        assertFalse(DeviceFile.isMemory(pid, 0));
        assertEquals(DeviceFile.FOREIGN, DeviceFile.duplicateMemory(pid, pidfd, 0));
    }

    @Test
    void shouldTakeNothingWhereTheDriverIsNotLoaded() throws Exception {
        start(Path.of(ZERO));
        assertFalse(DeviceFile.ofDriver(LIBC, ZERO_MINOR, "no-such-driver").leadsTo(pid, 0, ZERO));
        assertFalse(DeviceFile.likeOwn(LIBC).leadsTo(pid, 0, "/dev/no-such-device"));
    }

    @Test
    void shouldNotTakeTheDriversOwnDeviceWhereAStandInAnswers() throws Exception {
        start(Path.of(ZERO));
        assertTrue(zero.leadsTo(pid, 0, ZERO));
        LIBC.use(STANDIN.toString());
        try {
            assertFalse(zero.leadsTo(pid, 0, ZERO), "tests on a machine with a GPU would control its processes");
            assertEquals(DeviceFile.FOREIGN, zero.duplicate(pid, pidfd, 0, ZERO));
            assertEquals(-Errno.EBADF, zero.duplicate(pid, pidfd, 99, ZERO));
        } finally {
            LIBC.use(Platform.C_LIBRARY_NAME);
        }
    }

    @Test
    void shouldSayThatADescriptorIsNotOpen() throws Exception {
        start(Path.of(ZERO));
        assertFalse(zero.leadsTo(pid, 99, ZERO));
        assertEquals(-Errno.EBADF, zero.duplicate(pid, pidfd, 99, ZERO));
        assertEquals(-Errno.EBADF, DeviceFile.duplicateMemory(pid, pidfd, 99));
    }
}
