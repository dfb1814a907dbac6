/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class RemoteDescriptorsTest {
    private static final class Functions implements DriverLibrary.Functions {
        @Override
        public native int ioctl(int fd, long request, long argument);

        @Override
        public native int open(String path, int flags, int mode);

        @Override
        public native long readlink(long path, byte[] buffer, long size);
    }

    private static final DriverLibrary LIBC = new DriverLibrary("gpuseg.test.library", new Functions());

    @TempDir
    private Path directory;
    private final Memory path = new Memory(4096);
    private Path file;
    private Process process;
    private int pid;

    @BeforeEach
    void start() throws Exception {
        file = Files.createFile(directory.resolve("opened"));
        process = new ProcessBuilder("sleep", "60").redirectInput(file.toFile())
            .redirectOutput(Path.of("/dev/null").toFile()).start();
        pid = (int) process.pid();
        while (!"sleep".equals(ProcessStatus.commandName(pid))) {
            Thread.sleep(1);   // the launcher has not become the program yet
        }
    }

    @AfterEach
    void stop() throws Exception {
        process.destroyForcibly().waitFor();
    }

    @Test
    void shouldShowWhatTheDescriptorsOfAProcessReferTo() throws Exception {
        final List<Integer> opened = new ArrayList<>();
        final List<String> names = new ArrayList<>();
        RemoteDescriptors.visit(pid, LIBC, link -> {
            names.add(link.fd() + " " + link);
            if (link.is(file.toString())) {
                opened.add(link.fd());
            }
            assertEquals(link.fd() == 0, link.startsWith(directory.toString()), link.toString());
            assertFalse(link.is(directory.toString()), "the whole name counts");
            assertFalse(link.startsWith(file + "-longer"));
            return true;
        });
        assertEquals(List.of(0), opened);
        assertTrue(names.contains("1 /dev/null"), names::toString);
    }

    @Test
    void shouldEndTheVisitWhenTheVisitorHasEnough() throws Exception {
        final List<Integer> seen = new ArrayList<>();
        RemoteDescriptors.visit(pid, LIBC, link -> {
            seen.add(link.fd());
            return false;
        });
        assertEquals(1, seen.size());
    }

    @Test
    void shouldDuplicateADescriptorOfTheProcessThatWasMeant() throws Exception {
        final int pidfd = RemoteDescriptors.openProcess(pid, ProcessStatus.startTicks(pid));
        assertTrue(pidfd >= 0, "errno " + -pidfd);
        assertEquals("", RemoteDescriptors.refusal(), "else the rest cannot work here");
        final int copy = SystemCalls.pidfdGetfd(pidfd, 0);
        assertTrue(copy >= 0, "errno " + -copy);
        assertTrue(Files.isSameFile(file, Path.of("/proc/self/fd/" + copy)));
        SystemCalls.closeOnce(copy);
        SystemCalls.closeOnce(pidfd);
    }

    @Test
    void shouldNotOpenAnotherProcessThatGotThePid() {
        assertEquals(-Errno.ESRCH, RemoteDescriptors.openProcess(pid, ProcessStatus.startTicks(pid) - 1));
    }

    @Test
    void shouldSayThatTheProcessHasEnded() throws Exception {
        final long ticks = ProcessStatus.startTicks(pid);
        process.destroyForcibly().waitFor();
        assertThrows(IOException.class, () -> RemoteDescriptors.visit(pid, LIBC, link -> true));
        assertEquals(-Errno.ESRCH, RemoteDescriptors.openProcess(pid, ticks));
    }

    private long address(final String text) {
        path.setString(0, text);
        return Pointer.nativeValue(path);
    }

    @Test
    void shouldReturnTheErrorOfAFailedCall() {
        assertFalse(LIBC.isReplaced());
        assertEquals(-Errno.ENOENT, LIBC.open(directory.resolve("missing").toString()));
        assertEquals(-Errno.EBADF, LIBC.ioctl(-1, 0, 0));
        assertEquals(-Errno.EINVAL, LIBC.readlink(address(file.toString()), new byte[16]), "no link");
        final int fd = LIBC.open(file.toString());
        assertTrue(fd >= 0, "errno " + -fd);
        final byte[] target = new byte[256];
        final int length = LIBC.readlink(address("/proc/self/fd/" + fd), target);
        assertEquals(file.toString(), new String(target, 0, length, java.nio.charset.StandardCharsets.UTF_8));
        SystemCalls.closeOnce(fd);
        assertThrows(IllegalStateException.class, () -> SystemCalls.closeOnce(fd), "closed twice");
    }
}
