/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ProcEntriesTest {
    /** More than fit into one reading of the directory. */
    private static final int MANY = 900;
    private static final int NO_PROCESS = Integer.MAX_VALUE;

    @TempDir
    private Path directory;
    private final byte[] target = new byte[256];

    @Test
    void shouldListProcessesAndNothingElse() throws IOException {
        final Set<Integer> seen = new HashSet<>();
        try (ProcEntries entries = new ProcEntries()) {
            entries.openProcesses();
            while (entries.next()) {
                assertTrue(seen.add(entries.number()), "once");
            }
        }
        assertTrue(seen.contains(ProcessStatus.pid()) && seen.contains(1), seen::toString);
    }

    @Test
    void shouldListAllDescriptorsWithWhatTheyReferTo() throws IOException {
        final Path file = Files.createFile(directory.resolve("opened"));
        final List<FileChannel> open = new ArrayList<>();
        try {
            for (int i = 0; i < MANY; i++) {
                open.add(FileChannel.open(file));
            }
            for (int again = 0; again < 2; again++) {
                assertEquals(MANY, count(file.toString()), "of reading " + again);
            }
        } finally {
            for (final FileChannel channel : open) {
                channel.close();
            }
        }
    }

    private int count(final String name) throws IOException {
        int found = 0;
        try (ProcEntries entries = new ProcEntries()) {
            entries.openDescriptors(ProcessStatus.pid());
            while (entries.next()) {
                final int length = entries.readlink(target);
                if (length > 0 && name.equals(new String(target, 0, length, StandardCharsets.UTF_8))) {
                    found++;
                }
            }
        }
        return found;
    }

    @Test
    void shouldListTheThreadsOfAProcess() throws IOException {
        final Set<Integer> seen = new HashSet<>();
        try (ProcEntries entries = new ProcEntries()) {
            entries.openThreads(ProcessStatus.pid());
            while (entries.next()) {
                assertTrue(seen.add(entries.number()), "once");
            }
        }
        assertTrue(seen.contains(ProcessStatus.pid()) && seen.contains(ThreadControl.tid()), seen::toString);
    }

    @Test
    void shouldSayThatAProcessIsGone() throws IOException {
        try (ProcEntries entries = new ProcEntries()) {
            assertThrows(NoSuchFileException.class, () -> entries.openDescriptors(NO_PROCESS));
            assertThrows(NoSuchFileException.class, () -> entries.openThreads(NO_PROCESS));
            entries.openProcesses();
            assertTrue(entries.next(), "it can be used again");
        }
    }

    @Test
    void shouldMakeNoObjectForAnEntry() throws IOException {
        final com.sun.management.ThreadMXBean threads =
            (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long thread = Thread.currentThread().getId();
        try (ProcEntries entries = new ProcEntries()) {
            int read = walk(entries);
            final long before = threads.getThreadAllocatedBytes(thread);
            read += walk(entries);
            final long bytes = threads.getThreadAllocatedBytes(thread) - before;
            assertTrue(read > 0 && bytes < 1_000, bytes + " bytes for " + read / 2 + " entries");
        }
    }

    private int walk(final ProcEntries entries) throws IOException {
        int read = 0;
        entries.openProcesses();
        while (entries.next()) {
            read++;
        }
        entries.openDescriptors(ProcessStatus.pid());
        while (entries.next()) {
            read += entries.readlink(target) > 0 ? 1 : 0;
        }
        entries.openThreads(ProcessStatus.pid());
        while (entries.next()) {
            read++;
        }
        return read;
    }
}
