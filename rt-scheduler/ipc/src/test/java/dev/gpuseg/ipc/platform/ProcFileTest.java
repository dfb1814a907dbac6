/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ProcFileTest {
    private static final int PID = 4711;
    private static final int MAX = 20_000;

    @TempDir
    private Path proc;
    private Path process;
    private ProcFile file;

    @BeforeEach
    void make() throws IOException {
        process = Files.createDirectories(proc.resolve(Integer.toString(PID)));
        file = new ProcFile(proc.toString(), MAX);
    }

    private String text() {
        return StandardCharsets.ISO_8859_1.decode(file.content()).toString();
    }

    @Test
    void shouldReadAFileOfAnyLengthUpToItsBound() throws IOException {
        for (final int length : new int[] {0, 1, 4_096, 9_999, MAX, 100}) {
            Files.writeString(process.resolve("environ"), "x".repeat(length));
            assertEquals(length, file.read(PID, "environ"));
            assertEquals("x".repeat(length), text());
        }
        Files.writeString(process.resolve("environ"), "x".repeat(2 * MAX));
        assertTrue(file.read(PID, "environ") >= MAX, "it ends when the bound is reached");
    }

    @Test
    void shouldSayThatNothingCouldBeRead() throws IOException {
        Files.writeString(process.resolve("environ"), "x");
        assertEquals(1, file.read(PID, "environ"));
        assertEquals(-1, file.read(PID + 1, "environ"), "no such process");
        assertEquals(0, file.content().limit(), "what was read before is not shown again");
        Files.createDirectory(process.resolve("directory"));
        assertEquals(-1, file.read(PID, "directory"));
        assertEquals(-1, file.readLink(PID, "environ"), "no link");
    }

    @Test
    void shouldReadLinksAndDescriptors() throws IOException {
        Files.createSymbolicLink(process.resolve("exe"), Path.of("/bin/program"));
        assertEquals("/bin/program".length(), file.readLink(PID, "exe"));
        assertEquals("/bin/program", text());
        Files.createDirectory(process.resolve("fd"));
        Files.writeString(process.resolve("fd/1234567"), "content");
        assertEquals(7, file.readDescriptor(PID, 1_234_567));
        assertEquals("content", text());
    }

    @Test
    void shouldReadFilesOfThreads() throws IOException {
        Files.writeString(Files.createDirectories(process.resolve("task/1234567890")).resolve("comm"), "thread\n");
        assertEquals(7, file.readThread(PID, 1_234_567_890, "comm"));
        assertEquals("thread\n", text());
        assertEquals(-1, file.readThread(PID, 1_234_567_891, "comm"), "no such thread");
        assertEquals(-1, file.readThread(PID, 1_234_567_890, "schedstat"), "no such file");
    }

    @Test
    void shouldKnowTheProgramOfThisProcess() {
        final int self = ProcessStatus.pid();
        assertTrue(ProcessStatus.runs(self, "java"));
        assertFalse(ProcessStatus.runs(self, "ava"));
        assertFalse(ProcessStatus.runs(Integer.MAX_VALUE, "java"));
    }
}
