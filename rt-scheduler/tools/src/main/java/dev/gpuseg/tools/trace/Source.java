/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import dev.gpuseg.analysis.io.LimitedFile;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalReader;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.util.HexFormat;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.agrona.concurrent.UnsafeBuffer;

/** A recording, or the journal of a daemon, as a stream of events. Immutable; each reading opens the file anew. */
public final class Source {
    /** Of the manifest, inflated; ours have a few kilobytes. */
    private static final int MANIFEST_MAX = 1 << 20;

    private static final int END_BYTES = 22;
    private static final int END_MAGIC = 0x06054b50;
    private static final int LIST_BYTES_AT = 12;
    private static final int LIST_MAX = 1 << 16;

    private final Path path;
    private final JsonNode manifest;
    private final boolean journal;

    private Source(final Path path, final JsonNode manifest, final boolean journal) {
        this.path = path;
        this.manifest = manifest;
        this.journal = journal;
    }

    /**
     * Opens one.
     *
     * @param path a recording, or the directory of a journal
     * @return the source
     * @throws IOException              if it cannot be read
     * @throws IllegalArgumentException if it is neither
     */
    public static Source open(final Path path) throws IOException {
        if (Files.isDirectory(path)) {
            final Path inside = path.resolve("journal");
            final Path directory = Files.isDirectory(inside) ? inside : path;
            new JournalReader(directory).close();   // refuses what is none
            return new Source(directory, JsonNodeFactory.instance.objectNode(), true);
        }
        if (!Files.exists(path)) {
            throw new IllegalArgumentException(path + ": no such file; name a recording (gpuseg trace record) or the "
                + "directory of a journal");
        }
        requireShortList(path);
        try (ZipFile zip = new ZipFile(path.toFile())) {
            final ZipEntry entry = zip.getEntry(RecordingWriter.MANIFEST);
            if (entry == null || zip.getEntry(RecordingWriter.EVENTS) == null) {
                throw notARecording(path, null);
            }
            final JsonNode manifest;
            try (InputStream in = zip.getInputStream(entry)) {
                manifest = new ObjectMapper().readTree(LimitedFile.bytes(in, MANIFEST_MAX, path + ": manifest"));
            }
            if (!RecordingWriter.FORMAT.equals(manifest.path("format").asText())) {
                throw notARecording(path, null);
            }
            if (manifest.path("version").asInt() > RecordingWriter.VERSION) {
                throw new IllegalArgumentException(path + ": version " + manifest.path("version").asInt()
                    + " of the format; this program reads up to " + RecordingWriter.VERSION + ", use a newer one");
            }
            return new Source(path, manifest, false);
        } catch (final ZipException e) {
            throw notARecording(path, e);
        }
    }

    /** ZipFile keeps the list of all entries, of which a recording has two. Its size is in the last 22 bytes. */
    private static void requireShortList(final Path path) throws IOException {
        final ByteBuffer end = ByteBuffer.allocate(END_BYTES).order(ByteOrder.LITTLE_ENDIAN);
        try (FileChannel file = FileChannel.open(path)) {
            if (file.size() < END_BYTES || file.read(end, file.size() - END_BYTES) < END_BYTES
                || end.getInt(0) != END_MAGIC || Integer.compareUnsigned(end.getInt(LIST_BYTES_AT), LIST_MAX) > 0) {
                throw notARecording(path, null);
            }
        }
    }

    private static IllegalArgumentException notARecording(final Path path, final Throwable cause) {
        return new IllegalArgumentException(path + ": not a recording of gpuseg; make one with gpuseg trace record",
            cause);
    }

    /** Where it lies: file or directory. */
    public Path path() {
        return path;
    }

    /** The manifest: empty object for a journal. */
    public JsonNode manifest() {
        return manifest;
    }

    /**
     * Hands over every event.
     *
     * @param handler receives the events; the object is reused
     * @return how many there were
     * @throws IOException if it cannot be read, or is not what its manifest says
     */
    public long forEach(final JournalReader.Handler handler) throws IOException {
        if (journal) {
            return JournalReader.forEach(path, handler);
        }
        final MessageDigest digest = RecordingWriter.sha256();
        long events = 0;
        try (ZipFile zip = new ZipFile(path.toFile());
            DataInputStream in = new DataInputStream(new DigestInputStream(new BufferedInputStream(
                zip.getInputStream(zip.getEntry(RecordingWriter.EVENTS)), 1 << 16), digest))) {
            final JournalEvent event = new JournalEvent();
            byte[] bytes = new byte[JournalEvent.BYTES];
            final UnsafeBuffer buffer = new UnsafeBuffer(bytes);
            for (int length = nextLength(in); length >= 0; length = nextLength(in)) {
                if (length < JournalEvent.BYTES || length > JournalEvent.BYTES_MAX) {
                    throw damaged("event " + (events + 1) + " has " + length + " bytes");
                }
                if (bytes.length < length) {
                    bytes = new byte[length];
                    buffer.wrap(bytes);
                }
                in.readFully(bytes, 0, length);
                event.decode(buffer, 0, length);
                handler.onEvent(event);
                events++;
            }
        } catch (final EOFException e) {
            throw damaged("it ends within event " + (events + 1));
        }
        final String found = HexFormat.of().formatHex(digest.digest());
        if (!found.equals(manifest.path("events_sha256").asText())) {
            throw damaged("its events do not have the SHA-256 of its manifest");
        }
        return events;
    }

    private static int nextLength(final DataInputStream in) throws IOException {
        final int first = in.read();
        if (first < 0) {
            return -1;
        }
        return first << 24 | in.readUnsignedByte() << 16 | in.readUnsignedByte() << 8 | in.readUnsignedByte();
    }

    private IOException damaged(final String how) {
        return new IOException(path + ": damaged: " + how + "; record again");
    }
}
