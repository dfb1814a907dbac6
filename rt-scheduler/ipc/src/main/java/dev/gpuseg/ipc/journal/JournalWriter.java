/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.core.time.SetTimeProvider;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.RollCycles;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.DocumentContext;
import org.agrona.DirectBuffer;

/**
 * Appends events to the journal's Chronicle queue and limits its size: a file holds a quarter of the cap, and when a
 * new one is opened the oldest beyond the cap are deleted. This class decides which file is current, not the wall
 * clock. One thread.
 */
final class JournalWriter implements AutoCloseable {
    private static final long DAY_NS = 86_400_000_000_000L;
    private static final int FILES = 4;
    private static final int DOCUMENT_OVERHEAD = 4;
    /** Space is reserved in portions of this size, ahead of what is written. */
    private static final long PORTION = 1 << 18;
    /** Longest document, an index page that Chronicle may put before it, and the header that follows. */
    private static final long AHEAD = 1 << 16;
    /** What a new file needs immediately. */
    private static final long NEW_FILE = 1 << 20;

    private final Path directory;
    private final long bytesPerFile;
    private final SetTimeProvider clock;
    private final SingleChronicleQueue queue;
    private final ExcerptAppender appender;
    private long bytesInFile;
    private long reserved;
    private long files;

    JournalWriter(final Path directory, final long maxBytes) {
        if (maxBytes < JournalAgent.BYTES_MIN) {
            throw new IllegalArgumentException("journal size: " + maxBytes + " bytes is too small; use at least 1MiB");
        }
        this.directory = directory;
        bytesPerFile = maxBytes / FILES;
        try {
            if (!Files.exists(directory)) {
                Files.createDirectories(directory);
                FileAccess.chmod(directory, 0700);   // it shows what the tasks of every user do
            }
            if (Files.exists(directory.resolve(JournalFiles.METADATA))) {
                JournalFiles.require(directory);   // it may be another's
            }
            final List<Path> existing = cycleFiles();
            files = existing.isEmpty() ? 0 : ordinal(existing.get(existing.size() - 1));
        } catch (final IOException e) {
            throw new IllegalStateException("journal " + directory + ": " + e.getMessage()
                + "; choose another place with --journal", e);
        }
        clock = new SetTimeProvider(files * DAY_NS);
        queue = builder(directory).timeProvider(clock).blockSize(blockSize(bytesPerFile)).build();
        requireSpace();
        appender = queue.createAppender();
        appender.singleThreadedCheckDisabled(true);
    }

    static SingleChronicleQueueBuilder builder(final Path directory) {
        return SingleChronicleQueueBuilder.binary(directory).rollCycle(RollCycles.FAST_DAILY);
    }

    private static int blockSize(final long bytesPerFile) {
        return (int) Math.min(64 << 20, Math.max(1 << 20, Long.highestOneBit(bytesPerFile)));
    }

    /**
     * Appends an event. Space is reserved before it is written: on a full file system a mapped file would otherwise
     * lose it, and the fault would occur later and elsewhere.
     *
     * @throws SystemCallException with ENOSPC if there is no space; nothing was appended, try again later
     */
    void append(final DirectBuffer buffer, final int offset, final int length) {
        if (bytesInFile >= bytesPerFile) {
            requireSpace();
            roll();
        }
        try (DocumentContext document = appender.writingDocument()) {
            final Bytes<?> out = document.wire().bytes();
            try {
                reserve(out.writePosition() + length + AHEAD);
            } catch (final SystemCallException e) {
                document.rollbackOnClose();
                throw e;
            }
            int i = 0;
            for (; i + Long.BYTES <= length; i += Long.BYTES) {
                out.writeLong(buffer.getLong(offset + i));
            }
            for (; i < length; i++) {
                out.writeByte(buffer.getByte(offset + i));
            }
        }
        bytesInFile += length + DOCUMENT_OVERHEAD;
    }

    private void requireSpace() {
        if (FileAccess.freeBytes(directory) < NEW_FILE) {
            throw new SystemCallException("statfs", directory + ", " + NEW_FILE + " bytes for the next file",
                Errno.ENOSPC);
        }
    }

    private void reserve(final long upTo) {
        if (upTo > reserved) {
            final long wanted = (upTo / PORTION + 1) * PORTION;
            Descriptor.allocate(current(), wanted);
            reserved = wanted;
        }
    }

    private Path current() {
        return directory.resolve(LocalDate.ofEpochDay(files).format(DateTimeFormatter.BASIC_ISO_DATE) + "F.cq4");
    }

    private void roll() {
        files++;
        reserved = 0;
        clock.currentTimeNanos(files * DAY_NS);
        bytesInFile = 0;
        try {
            if (Files.exists(directory.resolve(JournalFiles.METADATA))) {
                JournalFiles.require(directory);   // it may be another's
            }
            final List<Path> existing = cycleFiles();
            for (int i = 0; i <= existing.size() - FILES; i++) {
                Files.deleteIfExists(existing.get(i));
            }
        } catch (final IOException e) {
            throw new IllegalStateException("journal " + directory + ": cannot delete old files: " + e.getMessage(), e);
        }
        queue.refreshDirectoryListing();
    }

    private List<Path> cycleFiles() throws IOException {
        final List<Path> found = new ArrayList<>();
        try (Stream<Path> all = Files.list(directory)) {
            all.filter(p -> p.getFileName().toString().endsWith(".cq4")).sorted().forEach(found::add);
        }
        return found;
    }

    private static long ordinal(final Path file) {
        final String name = file.getFileName().toString();
        return LocalDate.parse(name.substring(0, 8), DateTimeFormatter.BASIC_ISO_DATE).toEpochDay();
    }

    @Override
    public void close() {
        appender.close();
        queue.close();
    }
}
