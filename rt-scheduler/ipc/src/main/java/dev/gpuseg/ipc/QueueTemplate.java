/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.format.DateTimeFormatter;
import java.util.Arrays;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.core.time.SetTimeProvider;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.RollCycles;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueueBuilder;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * A queue that Chronicle itself made at start-up, with one ROLL record in it. Cycle files do not contain their cycle's
 * number, so every cycle of every client is a copy of this one. The next file is complete long before the current one
 * ends, and making it neither takes the queue's lock nor delays the client.
 */
public final class QueueTemplate {
    private static final DateTimeFormatter CYCLE_NAME = DateTimeFormatter.ofPattern("yyyyMMdd'F.cq4'");

    private final int bytes;
    private final byte[] metadata;
    private final byte[] cycle;
    private final int writeLockOffset;
    private final int highestCycleOffset;
    private final int lowestCycleOffset;
    private final int modCountOffset;

    private QueueTemplate(final int bytes, final byte[] metadata, final byte[] cycle) {
        this.bytes = bytes;
        this.metadata = metadata;
        this.cycle = cycle;
        writeLockOffset = keyOffset("chronicle.write.lock");
        highestCycleOffset = keyOffset("listing.highestCycle");
        lowestCycleOffset = keyOffset("listing.lowestCycle");
        modCountOffset = keyOffset("listing.modCount");
    }

    /**
     * Makes the template, in a directory that is deleted afterwards.
     *
     * @param directory scratch, on the file system of the queues
     * @param bytes     size of a cycle file, a power of two, {@link ClientQueue#BYTES_MIN} .. {@link
     *                  ClientQueue#BYTES_MAX}
     * @return the template
     * @throws IllegalStateException if Chronicle wrote something that this class does not know
     */
    public static QueueTemplate create(final Path directory, final int bytes) {
        RuntimeDirectory.deleteTree(directory);
        try (SingleChronicleQueue queue = builder(directory, bytes).build();
            ExcerptAppender appender = queue.createAppender()) {
            try (DocumentContext document = appender.writingDocument()) {
                final Bytes<?> out = document.wire().bytes();
                out.writeShort((short) Abi.RECORD_ROLL);
                out.write(new byte[Abi.Record.SIZE - Short.BYTES]);
            }
        }
        try (ScratchTree made = new ScratchTree(directory)) {
            final byte[] metadata = Files.readAllBytes(made.path().resolve(QueueFormat.METADATA));
            final byte[] file = Files.readAllBytes(directory.resolve(cycleName(0)));
            int end = file.length;
            while (end > 0 && file[end - 1] == 0) {
                end--;
            }
            // the record's reserved fields are zero, so the last document ends behind the last byte that is not
            int position = 0;
            int header = header(file, 0);
            while (header != 0) {
                position = QueueFormat.align(position + QueueFormat.HEADER_BYTES + (header & QueueFormat.LENGTH_MASK));
                header = header(file, position);
            }
            if (position < end || header(file, position - QueueFormat.DOCUMENT_BYTES) != Abi.Record.SIZE) {
                throw new IllegalStateException(directory + ": this version of chronicle-queue writes cycle files of"
                    + " unknown form; use the version named in pom.xml");
            }
            return new QueueTemplate(bytes, metadata, Arrays.copyOf(file, position));
        } catch (final IOException e) {
            throw new UncheckedIOException("queue template " + directory + " cannot be read: " + e.getMessage(), e);
        }
    }

    static SingleChronicleQueueBuilder builder(final Path directory, final int bytes) {
        // a clock that stands still: the daemon changes cycles, not midnight
        return SingleChronicleQueueBuilder.binary(directory.toFile()).rollCycle(RollCycles.FAST_DAILY)
            .timeProvider(new SetTimeProvider(0)).blockSize(bytes).timeoutMS(200);
    }

    static String cycleName(final int cycle) {
        return CYCLE_NAME.format(LocalDate.ofEpochDay(cycle));
    }

    private static int header(final byte[] file, final int position) {
        return ByteBuffer.wrap(file).order(ByteOrder.LITTLE_ENDIAN).getInt(position);
    }

    /** Offset of the 64-bit value of a key of the metadata table: B9, length, name, padding, A7, value. */
    private int keyOffset(final String key) {
        final byte[] name = key.getBytes(StandardCharsets.US_ASCII);
        int position = 0;
        int header = header(metadata, 0);
        while (header != 0) {
            int at = position + QueueFormat.HEADER_BYTES;
            if ((header & QueueFormat.META) == 0 && (metadata[at] & 0xff) == 0xB9 && metadata[at + 1] == name.length
                && Arrays.equals(metadata, at + 2, at + 2 + name.length, name, 0, name.length)) {
                at += 2 + name.length;
                while ((metadata[at] & 0xff) == 0x8F || (metadata[at] & 0xff) == 0x8E) {
                    at += (metadata[at] & 0xff) == 0x8F ? 1 : 5 + header(metadata, at + 1);
                }
                if ((metadata[at] & 0xff) == 0xA7 && (at + 1 & 7) == 0) {
                    return at + 1;
                }
            }
            position = QueueFormat.align(position + QueueFormat.HEADER_BYTES + (header & QueueFormat.LENGTH_MASK));
            header = header(metadata, position);
        }
        throw new IllegalStateException("chronicle-queue wrote no key " + key
            + " that is understood; use the version named in pom.xml");
    }

    /** Size of a cycle file as the client sees it. */
    int bytes() {
        return bytes;
    }

    byte[] metadata() {
        return metadata;
    }

    /** The beginning of a cycle file up to the end of its ROLL record; the rest is zero. */
    byte[] cycle() {
        return cycle;
    }

    int writeLockOffset() {
        return writeLockOffset;
    }

    int highestCycleOffset() {
        return highestCycleOffset;
    }

    int lowestCycleOffset() {
        return lowestCycleOffset;
    }

    int modCountOffset() {
        return modCountOffset;
    }
}
