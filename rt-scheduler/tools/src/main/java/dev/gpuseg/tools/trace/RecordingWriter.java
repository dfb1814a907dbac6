/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.platform.ClockReading;
import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.DigestOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.util.HexFormat;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Writes a recording: a ZIP file with {@code events.bin} (each event as a big-endian 32-bit length and the bytes of
 * {@code struct gpuseg_event} with its text) and {@code manifest.json} (version, clocks, host, configuration, SHA-256
 * of the events). It appears under its name only when complete, and read-only. One thread.
 */
public final class RecordingWriter implements AutoCloseable {
    /** Format version, in the manifest. */
    public static final int VERSION = 1;
    static final String EVENTS = "events.bin";
    static final String MANIFEST = "manifest.json";
    static final String FORMAT = "gpuseg-recording";
    private static final int LABEL_MAX = 256;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path file;
    private final Path part;
    private final MessageDigest digest = sha256();
    private final ZipOutputStream zip;
    private final DataOutputStream out;
    private final ObjectNode manifest = JsonNodeFactory.instance.objectNode();
    private byte[] bytes = new byte[JournalEvent.BYTES];
    private final UnsafeBuffer buffer = new UnsafeBuffer(bytes);
    private long events;
    private long prefaceEvents;
    private long lost;
    private long lastSeq;
    private int incarnations;
    private long firstNs;
    private long lastNs;
    private long followedNs;
    private boolean simulated;
    private boolean done;

    /**
     * Begins a recording.
     *
     * @param file where it will appear; must not exist
     * @throws IOException if it exists or its directory cannot be written
     */
    public RecordingWriter(final Path file) throws IOException {
        if (Files.exists(file)) {
            throw new FileAlreadyExistsException(file + ": exists, and recordings are never changed; name a new file");
        }
        this.file = file;
        part = file.resolveSibling(file.getFileName() + ".part");
        zip = new ZipOutputStream(ResultFile.part(file, part));
        zip.putNextEntry(new ZipEntry(EVENTS));
        out = new DataOutputStream(new DigestOutputStream(unclosed(zip), digest));
        manifest.put("format", FORMAT);
        manifest.put("version", VERSION);
        manifest.put("created_utc", Instant.now().toString());
    }

    static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (final NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);   // every Java platform has it
        }
    }

    private static OutputStream unclosed(final OutputStream to) {
        return new BufferedOutputStream(to, 1 << 14) {
            @Override
            public void close() throws IOException {
                flush();   // the entry ends, the archive goes on
            }
        };
    }

    /** For how long the journal was followed; the first and the last event may be closer. */
    void followed(final long ns) {
        followedNs = ns;
    }

    /**
     * Says where the recording comes from: a name of the manifest's object {@code labels}, such as {@code robot} and
     * {@code version}.
     *
     * @param name  1..64 of a-z, 0-9, dot, underscore, hyphen
     * @param value 1..256 characters
     * @throws IllegalArgumentException if one of them is not so
     */
    public void label(final String name, final String value) {
        if (!name.matches("[a-z0-9._-]{1,64}")) {
            throw new IllegalArgumentException("label \"" + name + "\": a name has 1..64 of a-z 0-9 . _ -");
        }
        if (value.isEmpty() || value.length() > LABEL_MAX) {
            throw new IllegalArgumentException("label \"" + name + "\": its value has " + value.length()
                + " characters; it must have 1.." + LABEL_MAX);
        }
        manifest.withObject("/labels").put(name, value);
    }

    /**
     * Appends an event that happened before the recording began and says what is open in it. Gaps between such events
     * are no loss.
     *
     * @param event kept as it is
     * @throws IOException if the file cannot be written
     */
    public void addPreface(final JournalEvent event) throws IOException {
        write(event);
        prefaceEvents++;
        lastSeq = event.seq();
        note(event);
    }

    /** Says that everything from here on is in the recording, the last preface event of that number included. */
    public void endPreface(final long seq) {
        manifest.put("preface_events", prefaceEvents);
        manifest.put("preface_until_seq", seq);
        lastSeq = seq;
    }

    /**
     * Appends an event.
     *
     * @param event kept as it is
     * @throws IOException if the file cannot be written
     */
    public void add(final JournalEvent event) throws IOException {
        if (event.kind() == EventKind.START) {
            lastSeq = 0;
        }
        lost += Math.max(0, event.seq() - lastSeq - 1);
        lastSeq = event.seq();
        if (firstNs == 0) {
            firstNs = event.timeNs();
        }
        lastNs = Math.max(lastNs, event.timeNs());
        write(event);
        note(event);
    }

    private void write(final JournalEvent event) throws IOException {
        final int length = event.length();
        if (bytes.length < length) {
            bytes = new byte[length];
            buffer.wrap(bytes);
        }
        event.encode(buffer, 0);
        out.writeInt(length);
        out.write(bytes, 0, length);
        events++;
    }

    private void note(final JournalEvent event) throws IOException {
        if (event.kind() == EventKind.START) {
            incarnations++;
            final JsonNode config = JSON.readTree(event.text());
            manifest.set("config", config);   // of the last daemon
            simulated |= config.path("simulated").asBoolean();   // of any of them
        } else if (event.kind() == EventKind.CLOCK) {
            final ObjectNode pair = manifest.withObject("/clocks").withArray("snapshots").addObject();
            pair.put("monotonic_ns", event.arg0());
            pair.put("realtime_ns", event.arg1());
            pair.setAll((ObjectNode) JSON.readTree(event.text()));
        }
    }

    /**
     * Completes the recording: it appears under its name.
     *
     * @param commit what the program was built from, empty if unknown
     * @return the manifest
     * @throws IOException if the file cannot be written
     */
    public ObjectNode finish(final String commit) throws IOException {
        out.close();
        zip.closeEntry();
        manifest.put("events", events);
        manifest.put("events_sha256", HexFormat.of().formatHex(digest.digest()));
        manifest.put("incarnations", incarnations);
        manifest.put("first_ns", firstNs);
        manifest.put("last_ns", lastNs);
        manifest.put("duration_ns", lastNs - firstNs);
        if (followedNs > 0) {
            manifest.put("followed_ns", followedNs);
        }
        manifest.put("lost_events", lost);
        manifest.put("simulated", simulated);
        manifest.put("commit", commit);
        final ObjectNode clocks = manifest.withObject("/clocks");
        clocks.put("unit", "ns of CLOCK_MONOTONIC");
        final ClockReading now = ClockReading.now();
        clocks.withArray("snapshots").addObject().put("monotonic_ns", now.monotonicNs())
            .put("realtime_ns", now.realtimeNs()).put("boottime_ns", now.boottimeNs())
            .put("uncertainty_ns", now.uncertaintyNs());
        clocks.put("gpu", "none: no GPU timestamps are in this recording");
        host(manifest.putObject("host"));
        zip.putNextEntry(new ZipEntry(MANIFEST));
        zip.write(JSON.writerWithDefaultPrettyPrinter().writeValueAsBytes(manifest));
        zip.closeEntry();
        zip.close();
        Files.move(part, file, StandardCopyOption.ATOMIC_MOVE);
        if (Files.getFileStore(file).supportsFileAttributeView("posix")) {
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("r--r--r--"));
        }
        done = true;
        return manifest;
    }

    private static void host(final ObjectNode host) {
        host.put("os", System.getProperty("os.name") + " " + System.getProperty("os.version"));
        host.put("architecture", System.getProperty("os.arch"));
        host.put("cpus", Runtime.getRuntime().availableProcessors());
        host.put("java", System.getProperty("java.runtime.version"));
    }

    /** Events so far, preface included. */
    public long events() {
        return events;
    }

    @Override
    public void close() throws IOException {
        if (!done) {
            try {
                zip.close();
            } finally {
                Files.deleteIfExists(part);
            }
        }
    }
}
