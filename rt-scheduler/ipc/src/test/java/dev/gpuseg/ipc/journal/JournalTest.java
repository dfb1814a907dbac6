/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.MappedByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.agrona.BitUtil;
import org.agrona.IoUtil;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RecordDescriptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

@Timeout(60)
class JournalTest {
    @TempDir
    private Path directory;

    private static List<JournalEvent> read(final Path journal) {
        final List<JournalEvent> events = new ArrayList<>();
        JournalReader.forEach(journal, event -> events.add(event.copy()));
        return events;
    }

    @Test
    void shouldReadBackEveryFieldAtExtremeValues() {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20)) {
            assertTrue(ring.write(EventKind.MECHANISM_ERROR, Long.MAX_VALUE, 255, 255, Integer.MAX_VALUE,
                Long.MIN_VALUE, Integer.MIN_VALUE, -1, Long.MIN_VALUE, -1, Long.MAX_VALUE));
            assertTrue(ring.writeText(EventKind.START, 1, 2, 3, 4, 5, 6, 7, "grüße, 4 words of \"text\""));
            agent.drain();
        }
        final List<JournalEvent> events = read(directory.resolve("journal"));
        assertEquals(2, events.size());
        final JournalEvent first = events.get(0);
        assertEquals(1, first.seq());
        assertEquals(EventKind.MECHANISM_ERROR, first.kind());
        assertEquals(Long.MAX_VALUE, first.timeNs());
        assertEquals(255, first.gpu());
        assertEquals(255, first.flags());
        assertEquals(Integer.MAX_VALUE, first.taskId());
        assertEquals(Long.MIN_VALUE, first.ticket());
        assertEquals(Integer.MIN_VALUE, first.contextId());
        assertEquals(-1, first.clientId());
        assertEquals(Long.MIN_VALUE, first.arg0());
        assertEquals(-1, first.arg1());
        assertEquals(Long.MAX_VALUE, first.arg2());
        assertEquals("", first.text());
        assertEquals("grüße, 4 words of \"text\"", events.get(1).text());
        assertEquals(2, events.get(1).seq());
    }

    private static void begin(final JournalRing ring, final int number) {
        assertTrue(ring.write(EventKind.BEGIN, number, 0, 0, number, number, 0, 0, 0, 0, 0));
    }

    @Test
    void shouldEndAtTheEndOfTheRingAlthoughItsWriterGoesOn() {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16)) {
            final JournalAgent agent = new JournalAgent(ring, journal, 1 << 20);
            for (int i = 0; i < 700; i++) {   // fills the ring beyond its end, so that it wraps below
                begin(ring, i);
            }
            agent.drain();
            for (int i = 0; i < 500; i++) {
                begin(ring, i);
            }
            agent.addTap(event -> begin(ring, 1000));   // as fast as events are taken
            agent.onClose();
            assertTrue(ring.pendingBytes() > 0);
        }
        final List<JournalEvent> events = read(journal);
        assertEquals(500, events.stream().skip(700).filter(event -> event.taskId() < 1000).count());
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent next = new JournalAgent(ring, journal, 1 << 20)) {
            assertEquals(500, next.written(), "what is left is the next daemon's");
        }
    }

    @Test
    void shouldReadToItsPresentEndAlthoughTheJournalGrows() {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, journal, 16 << 20)) {
            begin(ring, 1);
            begin(ring, 2);
            agent.drain();
            final JournalReader.Handler growing = event -> {
                begin(ring, 3);
                agent.drain();
            };
            assertEquals(2, JournalReader.forEach(journal, growing));
            try (JournalReader reader = new JournalReader(journal)) {
                assertEquals(4, reader.drain(growing));
                assertEquals(4, reader.drain(event -> { }));
                assertEquals(0, reader.drain(growing));
            }
        }
    }

    @Test
    void shouldAppendWhatAKilledDaemonLeftInTheRing() {
        try (JournalRing killed = new JournalRing(directory.resolve("ring"), 1 << 16)) {
            for (int i = 0; i < 10; i++) {
                killed.write(EventKind.BEGIN, i, 0, 0, i, i, 0, 0, 0, 0, 0);
            }
        }
        try (JournalRing next = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(next, directory.resolve("journal"), 1 << 20)) {
            next.writeText(EventKind.START, 100, 0, 0, 0, 0, 0, 0, "{}");
            agent.drain();
        }
        final List<JournalEvent> events = read(directory.resolve("journal"));
        assertEquals(11, events.size());
        assertEquals(9, events.get(9).taskId());
        assertEquals(EventKind.START, events.get(10).kind());
        assertEquals(1, events.get(10).seq(), "a new incarnation counts from 1");
    }

    /** What a daemon leaves that is killed while it writes an event: claimed, and not published. */
    private void killWithin(final Path file, final boolean lengthWritten) {
        final MappedByteBuffer mapped = IoUtil.mapExistingFile(file.toFile(), "ring");
        final OneToOneRingBuffer ring = new OneToOneRingBuffer(new UnsafeBuffer(mapped));
        final int before = (int) ring.producerPosition();
        final int at = ring.tryClaim(1, JournalEvent.BYTES) - RecordDescriptor.HEADER_LENGTH;
        assertTrue(at >= 0);
        if (at < before && !lengthWritten) {   // it wraps: killed before it made the padding, and cleared what is old
            ring.buffer().putInt(before, 0);
            ring.buffer().putInt(at, 1 << 20);
        } else if (at < before) {
            ring.buffer().putInt(before, -ring.buffer().getInt(before));
        } else if (!lengthWritten) {
            ring.buffer().putInt(at, 0);
        }
        IoUtil.unmap(mapped);
    }

    @ParameterizedTest
    @CsvSource({"false, true", "false, false", "true, true", "true, false"})
    void shouldGoOnAfterADaemonThatWasKilledWhileItWroteAnEvent(final boolean wraps, final boolean lengthWritten) {
        final Path file = directory.resolve("ring");
        final Path journal = directory.resolve("journal");
        final int perRing = (1 << 16) / BitUtil.align(JournalEvent.BYTES + RecordDescriptor.HEADER_LENGTH,
            RecordDescriptor.ALIGNMENT);
        final int written = wraps ? perRing : 3;
        try (JournalRing killed = new JournalRing(file, 1 << 16);
            JournalAgent agent = new JournalAgent(killed, journal, 1 << 20)) {
            for (int i = 0; i < written; i++) {
                killed.write(EventKind.BEGIN, i, 0, 0, i, i, 0, 0, 0, 0, 0);
                if (written - i > 3) {
                    agent.drain();
                }
            }
            killWithin(file, lengthWritten);
        }
        for (int restart = 0; restart < 2; restart++) {
            try (JournalRing next = new JournalRing(file, 1 << 16);
                JournalAgent agent = new JournalAgent(next, journal, 1 << 20)) {
                next.writeText(EventKind.START, 10_000 + restart, 0, 0, 0, 0, 0, 0, "{}");
                agent.drain();
                assertEquals(0, next.pendingBytes());
            }
        }
        final List<JournalEvent> seen = read(journal);
        assertEquals(written + 2, seen.size());
        assertEquals(written - 1, seen.get(written - 1).taskId());
        assertEquals(EventKind.START, seen.get(written + 1).kind());
    }

    @Test
    void shouldShowEveryEventToTapsAndDropOneThatThrows() {
        final List<String> seen = new ArrayList<>();
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20)) {
            agent.addTap(event -> seen.add(event.toString()));
            agent.addTap(event -> {
                throw new IllegalStateException("planted");
            });
            ring.write(EventKind.MECHANISM_ERROR, Long.MAX_VALUE, 255, 255, Integer.MAX_VALUE, Long.MIN_VALUE,
                Integer.MIN_VALUE, -1, Long.MIN_VALUE, -1, Long.MAX_VALUE);
            ring.writeText(EventKind.START, 1, 2, 3, 4, 5, 6, 7, "grüße");
            agent.drain();
            assertTrue(agent.tapFailure().contains("at event 1: "), agent::tapFailure);
            assertEquals(2, agent.written());
        }
        final List<String> read = new ArrayList<>();
        read(directory.resolve("journal")).forEach(event -> read.add(event.toString()));
        assertEquals(read, seen);
    }

    @Test
    void shouldCountAndSkipEventsWhenTheRingIsFull() {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 12)) {
            int accepted = 0;
            while (ring.write(EventKind.BEGIN, accepted, 0, 0, 1, 1, 0, 0, 0, 0, 0)) {
                accepted++;
            }
            assertTrue(accepted > 10);
            assertEquals(1, ring.dropped());
            try (JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20)) {
                ring.write(EventKind.END, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0);
                agent.drain();
            }
            final List<JournalEvent> events = read(directory.resolve("journal"));
            final JournalEvent last = events.get(events.size() - 1);
            final JournalEvent lost = events.get(events.size() - 2);
            assertEquals(accepted + 2, events.size());
            assertEquals(accepted + 3, last.seq(), "the lost event leaves a gap");
            assertEquals(EventKind.LOST, lost.kind());
            assertEquals(1, lost.arg0(), "one event");
            assertEquals(accepted + 1, lost.arg1(), "this one");
            assertEquals(accepted, lost.timeNs(), "lost at its time");
        }
    }

    /** As many as the documents say. */
    @Test
    void shouldHoldMoreThanAHundredThousandEventsWhileNobodyReadsThem() {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), JournalRing.DEFAULT_CAPACITY)) {
            int accepted = 0;
            while (ring.write(EventKind.BEGIN, accepted, 0, 0, 1, 1, 0, 0, 0, 0, 0)) {
                accepted++;
            }
            assertEquals(116_508, accepted);
        }
    }

    @Test
    void shouldStayBelowItsCapByDeletingTheOldestFiles() throws IOException {
        final Path journal = directory.resolve("journal");
        final long cap = 1 << 20;
        final int count = 60_000;
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
            JournalAgent agent = new JournalAgent(ring, journal, cap)) {
            for (int i = 0; i < count; i++) {
                assertTrue(ring.write(EventKind.BEGIN, i, 0, 0, i, 1, 0, 0, 0, 0, 0));
                if (i % 1000 == 0) {
                    agent.drain();
                }
            }
            agent.drain();
            assertEquals("", agent.failure());
        }
        try (Stream<Path> files = Files.list(journal)) {
            assertTrue(files.filter(f -> f.toString().endsWith(".cq4")).count() <= 4);
        }
        final List<JournalEvent> events = read(journal);
        assertTrue(events.size() * 68L <= cap, events.size() + " events are more than the cap");
        assertTrue(events.size() * 68L > cap / 2, "only " + events.size() + " events were kept");
        assertEquals(count, events.get(events.size() - 1).seq());
        for (int i = 1; i < events.size(); i++) {
            assertEquals(events.get(i - 1).seq() + 1, events.get(i).seq(), "no gap between files");
        }
    }

    @Test
    void shouldFollowAJournalThatIsBeingWritten() {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, journal, 1 << 20);
            JournalReader reader = new JournalReader(journal)) {
            final List<Long> seen = new ArrayList<>();
            assertEquals(0, reader.poll(event -> seen.add(event.seq()), 10));
            for (int i = 1; i <= 3; i++) {
                ring.write(EventKind.BEGIN, i, 0, 0, i, 1, 0, 0, 0, 0, 0);
                agent.drain();
                assertEquals(1, reader.poll(event -> seen.add(event.seq()), 10));
            }
            assertEquals(List.of(1L, 2L, 3L), seen);
        }
    }

    @Test
    void shouldRefuseADirectoryWithoutJournal() {
        final IllegalArgumentException refused = assertThrows(IllegalArgumentException.class,
            () -> JournalReader.forEach(directory, event -> { }));
        assertTrue(refused.getMessage().contains("no journal here"), refused.getMessage());
        assertFalse(Files.exists(directory.resolve("metadata.cq4t")), "looking creates nothing");
    }

    @Test
    void shouldSayThatAJournalBelongsToAnotherUser() {
        final Path journal = written();
        JournalFiles.require(journal, path -> true);
        final IllegalArgumentException refused = assertThrows(IllegalArgumentException.class,
            () -> JournalFiles.require(journal, path -> false));
        assertEquals("journal " + journal + ": belongs to another user, as to the daemon of `sudo gpuseg run`; use "
            + "sudo here, too", refused.getMessage());
    }

    private static boolean initialized;

    /** Its full name is longer than SCQMeta by 32, so that what follows keeps its alignment. */
    private static final class Init {
        static {
            initialized = true;
        }
    }

    private Path written() {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20)) {
            ring.writeText(EventKind.START, 1, 2, 3, 4, 5, 6, 7, "{}");
            agent.drain();
        }
        return directory.resolve("journal");
    }

    @Test
    void shouldInitializeNoClassThatAJournalNames() throws IOException {
        final Path journal = written();
        final Path metadata = journal.resolve(JournalFiles.METADATA);
        final byte[] before = Files.readAllBytes(metadata);
        final String name = "dev.gpuseg.ipc.journal.JournalTest$Init";
        final int at = new String(before, StandardCharsets.ISO_8859_1).indexOf("SCQMeta");
        final byte[] after = new byte[before.length];
        System.arraycopy(before, 0, after, 0, at);
        after[0] += 32;                 // of the document
        after[at - 31] += 32;           // of the table inside it
        after[at - 1] = (byte) name.length();
        System.arraycopy(name.getBytes(StandardCharsets.ISO_8859_1), 0, after, at, name.length());
        System.arraycopy(before, at + 7, after, at + name.length(), before.length - at - name.length());
        Files.write(metadata, after);
        final String said = assertThrows(IllegalArgumentException.class, () -> read(journal)).getMessage();
        assertFalse(initialized, "a class that the file names was initialized");
        assertTrue(said.contains("metadata.cq4t is not what gpuseg writes"), said);
        assertThrows(IllegalArgumentException.class, () -> written(), "nor does a daemon append to it");
        assertFalse(initialized, "a class that the file names was initialized");
    }

    @Test
    void shouldReadJournalsWithOtherPositionsAndNoOtherDifference() throws IOException {
        final Path journal = written();
        for (final Path file : List.of(journal.resolve(JournalFiles.METADATA), journal.resolve("19700101F.cq4"))) {
            final byte[] before = Files.readAllBytes(file);
            int accepted = 0;
            for (int at = 0; at < 148; at++) {
                final byte[] after = before.clone();
                after[at] ^= 1;
                Files.write(file, after);
                try {
                    JournalFiles.require(journal);
                    accepted++;
                } catch (final IllegalArgumentException e) {
                    assertTrue(e.getMessage().contains(file.getFileName() + " is not what gpuseg writes"),
                        e::getMessage);
                }
            }
            Files.write(file, before);
            assertEquals(file.endsWith("19700101F.cq4") ? 16 : 0, accepted, "bytes of positions in the beginning");
        }
        assertEquals(1, read(journal).size());
    }

    @Test
    void shouldPassOverWhatIsLongerThanAnyEvent() {
        final Path journal = written();
        try (JournalWriter writer = new JournalWriter(journal, 1 << 24)) {
            writer.append(new UnsafeBuffer(new byte[JournalEvent.BYTES_MAX + 8]), 0, JournalEvent.BYTES_MAX + 8);
        }
        assertEquals(1, read(journal).size());
    }
}
