/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Platform;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.DeviceFile;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Processes that give a file of their own the name of the control device. The file of a FUSE server that does not
 * answer blocks who reads, stats, controls or closes it: a test that touches it does not end in time.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class StrangersTest {
    private static final int SKIPPED = 77;
    private static final int SIGKILL = 9;
    private static final Path SOURCE = Path.of("rt-scheduler/mechanisms/src/test/c/stranger.c");

    @TempDir
    private Path directory;
    private Process stranger;
    private int remote;
    private int server;

    @BeforeEach
    void useTheKernel() {
        DriverCalls.DRIVER.use(Platform.C_LIBRARY_NAME);
    }

    private void start(final String kind, final String path) throws Exception {
        final Path program = directory.resolve("stranger");
        final Process compiler = new ProcessBuilder("gcc", "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-o",
            program.toString(), Path.of(System.getProperty("gpuseg.root")).resolve(SOURCE).toString()).inheritIO()
            .start();
        assertTrue(compiler.waitFor(60, TimeUnit.SECONDS) && compiler.exitValue() == 0, "gcc");
        stranger = new ProcessBuilder(program.toString(), kind, path).start();
        final BufferedReader out = stranger.inputReader();
        final String[] words = String.valueOf(out.readLine()).split(" ");
        if (!"open".equals(words[0])) {
            assertEquals(SKIPPED, stranger.waitFor(), () -> String.join(" ", words));
            assumeTrue(false, "a stranger's file of kind " + kind + " cannot be made: " + String.join(" ", words));
        }
        remote = Integer.parseInt(words[1]);
        server = Integer.parseInt(words[2]);
    }

    @AfterEach
    void end() throws InterruptedException {
        if (stranger != null && server > 0) {
            ProcessStatus.signal(server, SIGKILL);   // first: the other could not end while it waits for this one
        }
        if (stranger != null) {
            stranger.destroyForcibly().waitFor();
        }
    }

    private int pid() {
        return (int) stranger.pid();
    }

    @ParameterizedTest
    @ValueSource(strings = {"file", "fifo", "fuse", "pty"})
    void shouldNotFollowAProcessThatOnlyNamesAFileLikeTheDevice(final String kind) throws Exception {
        start(kind, RmProcess.CONTROL_DEVICE);
        assertEquals(RmProcess.CONTROL_DEVICE,
            Files.readSymbolicLink(Path.of("/proc/" + pid() + "/fd/" + remote)).toString(), "by its name it is one");
        final long before = DeviceFile.foreignSeen();
        assertEquals(List.of(), RmRig.controlDescriptors(pid()));
        assertTrue(DeviceFile.foreignSeen() > before);
    }

    @ParameterizedTest
    @ValueSource(strings = {"file", "fifo", "fuse", "pty"})
    void shouldIssueNoControlOnAStrangersFile(final String kind) throws Exception {
        start(kind, RmProcess.CONTROL_DEVICE);
        final RmControl rm = new RmControl();
        final RmProcess process = RmProcess.open(pid(), new GpuIndex(List.of()), Scope.COMPUTE, rm);
        try {
            process.refresh(System.nanoTime(), ControlCloser.inPlace());
            assertEquals(0, rm.controls());
            assertFalse(process.usesDriver());
            assertEquals(List.of(), RmRig.files(process));
            assertEquals("", process.refusal(), "a stranger's file is no reason to complain of");
        } finally {
            process.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"file", "fifo", "fuse", "pty"})
    void shouldNotDuplicateAStrangersMemoryFile(final String kind) throws Exception {
        start(kind, "/dev/memory");
        assertFalse(DeviceFile.isMemory(pid(), remote));
        final int pidfd = SystemCalls.pidfdOpen(pid());
        assertEquals(DeviceFile.FOREIGN, DeviceFile.duplicateMemory(pid(), pidfd, remote));
        SystemCalls.closeOnce(pidfd);
    }

    @ParameterizedTest
    @ValueSource(strings = {"file", "fifo", "fuse", "pty"})
    void shouldNotLetTheNativeLibraryControlAStrangersFile(final String kind) throws Exception {
        start(kind, RmProcess.CONTROL_DEVICE);
        final Process list = new ProcessBuilder(RmRig.program("gpuseg-rm").toString(), "list",
            Integer.toString(pid())).redirectErrorStream(true).start();
        try {
            assertTrue(list.waitFor(30, TimeUnit.SECONDS), "it waits for the stranger");
            assertEquals(1, list.exitValue());
            assertTrue(said(list).contains("Inappropriate ioctl for device"), "it says what it found");
        } finally {
            list.destroyForcibly();
        }
    }

    private static String said(final Process process) throws IOException {
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }
}
