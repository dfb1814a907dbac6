/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.journal.JournalEvent;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Recordings that would make their reader allocate what they like. */
class SourceTest {
    @TempDir
    private Path directory;

    private Path recording(final String manifest, final int furtherEntries) throws IOException {
        final Path file = directory.resolve("made.gpuseg");
        try (ZipOutputStream zip = new ZipOutputStream(Files.newOutputStream(file))) {
            zip.putNextEntry(new ZipEntry(RecordingWriter.EVENTS));
            zip.putNextEntry(new ZipEntry(RecordingWriter.MANIFEST));
            zip.write(manifest.getBytes(StandardCharsets.UTF_8));
            for (int i = 0; i < furtherEntries; i++) {
                zip.putNextEntry(new ZipEntry("entry-of-no-use-" + i));
            }
        }
        return file;
    }

    private static String said(final Class<? extends Exception> type, final Path file) {
        final String said = assertThrows(type, () -> Source.open(file)).getMessage();
        assertFalse(said.contains("\n"), said);
        return said;
    }

    @Test
    void shouldReadNoManifestOfMoreThanOneMebibyte() throws IOException {
        final String manifest = "{\"format\": \"" + RecordingWriter.FORMAT + "\", \"version\": 1, \"rest\": [0%s]}";
        assertEquals(1, Source.open(recording(manifest.formatted(",0".repeat(1 << 18)), 0)).manifest().path("version")
            .asInt());
        final Path large = recording(manifest.formatted(",[[[[1]]]]".repeat(1 << 20)), 0);
        assertTrue(Files.size(large) < 1 << 20, "it is small: " + Files.size(large));
        assertTrue(said(IOException.class, large).contains("manifest: is longer than 1048576 bytes"));
    }

    @Test
    void shouldNotListTheEntriesOfAnArchiveThatHasVeryMany() throws IOException {
        assertTrue(said(IllegalArgumentException.class, recording("{}", 2_000)).contains("not a recording"));
    }

    @Test
    void shouldSayInOneLineThatAHeapIsTooSmallForTheEvents() throws IOException {
        final Path file = directory.resolve("events.gpuseg");
        try (RecordingWriter writer = new RecordingWriter(file)) {
            for (int i = 1; i <= 1_000; i++) {
                final JournalEvent event = new JournalEvent();
                writer.add(event);
            }
            writer.finish("");
        }
        assertEquals(1_000, TraceBuilder.read(Source.open(file), 1 << 20).events);
        final String said = assertThrows(IllegalArgumentException.class,
            () -> TraceBuilder.read(Source.open(file), 1 << 16)).getMessage();
        assertTrue(said.startsWith("event 513: more than fits into a heap") && !said.contains("\n"), said);
    }
}
