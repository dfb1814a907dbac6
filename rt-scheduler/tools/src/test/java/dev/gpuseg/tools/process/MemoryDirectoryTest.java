/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class MemoryDirectoryTest {
    private final List<Path> made = new ArrayList<>();

    @AfterEach
    void delete() {
        made.forEach(MemoryDirectory::delete);
    }

    /** A process that has directories and then waits. */
    static final class Owner {
        private Owner() {
        }

        public static void main(final String[] arguments) throws Exception {
            System.out.println(MemoryDirectory.create("gpuseg-owner-"));
            System.out.println(MemoryDirectory.createOnDisk("gpuseg-owner-"));
            Thread.sleep(Long.MAX_VALUE);
        }
    }

    @Test
    void shouldRemoveWhatAKilledProcessLeftAndNothingElse() throws Exception {
        final Path ours = keep(MemoryDirectory.create("gpuseg-test-"));
        final Path foreign = keep(Files.createTempDirectory("gpuseg-foreign-"));
        final Process owner = new ProcessBuilder(JavaCommand.of(Owner.class, List.of())).start();
        final List<Path> theirs = new ArrayList<>();
        try (BufferedReader said = owner.inputReader()) {
            theirs.add(keep(Path.of(said.readLine())));
            theirs.add(keep(Path.of(said.readLine())));
            final List<Path> early = MemoryDirectory.removeLeftovers();
            assertTrue(early.stream().noneMatch(theirs::contains), "their owner lives, yet removed: " + early);
        } finally {
            owner.destroyForcibly().waitFor();
        }
        assertTrue(theirs.stream().allMatch(Files::isDirectory), theirs.toString());

        try (FileChannel daemon = FileChannel.open(theirs.get(0).resolve("daemon.lock"), StandardOpenOption.WRITE,
            StandardOpenOption.CREATE)) {
            assertTrue(daemon.lock().isValid());
            final List<Path> removed = MemoryDirectory.removeLeftovers();
            assertTrue(removed.contains(theirs.get(1)) && !removed.contains(theirs.get(0)), removed.toString());
            assertTrue(Files.isDirectory(theirs.get(0)), "a daemon runs in it");
        }
        assertTrue(MemoryDirectory.removeLeftovers().contains(theirs.get(0)));
        assertFalse(Files.exists(theirs.get(0)) || Files.exists(theirs.get(1)));
        assertTrue(Files.isDirectory(ours), "its owner is this process");
        assertTrue(Files.isDirectory(foreign), "nobody said that its owner is dead");
        Files.delete(foreign);
        MemoryDirectory.delete(ours);
        assertFalse(Files.exists(ours));
        assertEquals(List.of(), MemoryDirectory.removeLeftovers().stream().filter(made::contains).toList());
    }

    private Path keep(final Path directory) {
        made.add(directory);
        return directory;
    }
}
