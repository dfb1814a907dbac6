/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class JournalRunnerTest {
    @TempDir
    private Path directory;

    private static void begin(final JournalRing ring) {
        assertTrue(ring.write(EventKind.BEGIN, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0));
    }

    @Test
    void shouldStopAlthoughTheWriterGoesOn() throws Exception {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16)) {
            final JournalAgent agent = new JournalAgent(ring, journal, 1 << 20);
            agent.addTap(event -> begin(ring));   // as fast as events are taken
            for (int i = 0; i < 100; i++) {
                begin(ring);
            }
            final JournalRunner runner = new JournalRunner(agent);
            runner.start();
            runner.stop();
            assertFalse(runner.hangs());
            assertTrue(ring.pendingBytes() > 0);
        }
        assertTrue(JournalReader.forEach(journal, event -> { }) >= 100);
    }

    @Test
    void shouldSayThatItHangs() throws Exception {
        final CountDownLatch disk = new CountDownLatch(1);
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16)) {
            final JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20);
            agent.addTap(event -> await(disk));
            begin(ring);
            final JournalRunner runner = new JournalRunner(agent);
            runner.start();
            assertFalse(runner.hangs(), "not told to stop");
            runner.stop(50);
            assertTrue(runner.hangs());
            assertEquals("gpuseg-journal", runner.name());
            disk.countDown();
            runner.stop();
            assertFalse(runner.hangs());
        }
    }

    private static void await(final CountDownLatch latch) {
        try {
            latch.await();
        } catch (final InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
