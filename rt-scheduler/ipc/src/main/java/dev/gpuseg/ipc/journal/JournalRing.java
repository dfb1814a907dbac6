/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.agrona.BitUtil;
import org.agrona.IoUtil;
import org.agrona.concurrent.AtomicBuffer;
import org.agrona.concurrent.MessageHandler;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RecordDescriptor;
import org.agrona.concurrent.ringbuffer.RingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;

/**
 * Carries events from the dispatcher to the journal thread.
 *
 * <p>W: the dispatcher, R: the journal thread; a message is published by the release store of its length (Agrona's
 * one-to-one ring). It lies in a mapped file of the runtime directory, so the events that a killed daemon left here are
 * still readable by the next one ({@link JournalAgent} appends them first); the one that it was writing is skipped.
 * Writing never blocks and never allocates: if the ring is full the event is counted in {@link #dropped()} and its
 * sequence number is skipped, which a reader sees as a gap; when half of it is free again, a LOST event says how many
 * were lost and from when on.
 */
public final class JournalRing implements EventWriter, AutoCloseable {
    /** Default capacity: 116,508 events without a text: so long the disk may take. */
    public static final int DEFAULT_CAPACITY = 1 << 23;
    /** Longest text of one event, bytes of UTF-8; longer ones are cut. */
    public static final int TEXT_MAX = 4096;

    private static final int MESSAGE = 1;

    private final MappedByteBuffer mapped;
    private final OneToOneRingBuffer ring;
    private long seq;
    private volatile long dropped;
    /** Of the gap that no LOST event has told yet. */
    private long lostCount;
    private long lostFrom;
    private long lostSinceNs;

    /**
     * Maps the ring, creating the file if it is missing or has another size.
     *
     * @param file     path of the ring
     * @param capacity bytes, a power of two
     */
    public JournalRing(final Path file, final int capacity) {
        final long length = (long) capacity + RingBufferDescriptor.TRAILER_LENGTH;
        try (FileChannel channel = FileChannel.open(file,
            StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            FileAccess.chmod(file, 0600);   // it says what every user's tasks do
            if (channel.size() != length) {
                channel.truncate(0);
            }
            Descriptor.allocate(file, length);   // or a full file system would show as a fault, at any later write
            mapped = channel.map(FileChannel.MapMode.READ_WRITE, 0, length);
        } catch (final IOException | SystemCallException e) {
            throw new IllegalStateException("journal ring " + file + ": " + e.getMessage()
                + "; check that the directory exists and has space", e);
        }
        final AtomicBuffer buffer = new UnsafeBuffer(mapped);
        OneToOneRingBuffer opened = new OneToOneRingBuffer(buffer);
        final long pending = opened.producerPosition() - opened.consumerPosition();
        if (pending < 0 || pending > capacity || (opened.producerPosition() & 7) != 0
            || (opened.consumerPosition() & 7) != 0) {
            buffer.setMemory(0, (int) length, (byte) 0);   // not a ring of ours, or torn: nothing can be recovered
            opened = new OneToOneRingBuffer(buffer);
        }
        skipTorn(buffer, opened.consumerPosition(), opened.producerPosition(), capacity);
        ring = opened;
        mapped.load();
    }

    /**
     * Makes padding of what a killed daemon had claimed and not published: a reader would wait for it for ever. Only
     * the last claim can be like that; where it wraps around the end, it consists of two records.
     */
    private static void skipTorn(final AtomicBuffer buffer, final long from, final long to, final int capacity) {
        long at = from;
        boolean torn = false;
        while (to - at > 0) {
            final int index = (int) (at & capacity - 1);
            final int room = (int) Math.min(to - at, capacity - index);
            final int length = buffer.getInt(RecordDescriptor.lengthOffset(index));
            torn |= length < RecordDescriptor.HEADER_LENGTH || length > room;
            if (torn) {
                buffer.putInt(RecordDescriptor.typeOffset(index), RingBuffer.PADDING_MSG_TYPE_ID);
                buffer.putInt(RecordDescriptor.lengthOffset(index), room);
                at += room;
            } else {
                at += BitUtil.align(length, RecordDescriptor.ALIGNMENT);
            }
        }
    }

    @Override
    public boolean write(final EventKind kind, final long timeNs, final int gpu, final int flags, final int taskId,
        final long ticket, final int contextId, final int clientId, final long arg0, final long arg1, final long arg2) {
        if (lostCount > 0) {
            tellLoss();
        }
        final long sequence = ++seq;
        final int index = ring.tryClaim(MESSAGE, JournalEvent.BYTES);
        if (index < 0) {
            lose(sequence, timeNs);
            return false;
        }
        final AtomicBuffer b = ring.buffer();
        put(b, index, sequence, kind, timeNs, gpu, flags, taskId, ticket, contextId, clientId, arg0, arg1, arg2);
        ring.commit(index);
        return true;
    }

    @Override
    public boolean writeText(final EventKind kind, final long timeNs, final int gpu, final int taskId,
        final int contextId, final int clientId, final long arg0, final long arg1, final String text) {
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        final int length = Math.min(utf8.length, TEXT_MAX);
        if (lostCount > 0) {
            tellLoss();
        }
        final long sequence = ++seq;
        final int index = ring.tryClaim(MESSAGE, JournalEvent.BYTES + length);
        if (index < 0) {
            lose(sequence, timeNs);
            return false;
        }
        final AtomicBuffer b = ring.buffer();
        put(b, index, sequence, kind, timeNs, gpu, 0, taskId, 0, contextId, clientId, arg0, arg1, 0);
        b.putBytes(index + JournalEvent.BYTES, utf8, 0, length);
        ring.commit(index);
        return true;
    }

    private void lose(final long sequence, final long timeNs) {
        if (lostCount == 0) {
            lostFrom = sequence;
            lostSinceNs = timeNs;
        }
        lostCount++;
        dropped = dropped + 1;   // single writer
    }

    private void tellLoss() {
        if (ring.size() > ring.capacity() / 2) {
            return;   // it would take the room of the next event, which would be lost in its place
        }
        final int index = ring.tryClaim(MESSAGE, JournalEvent.BYTES);
        if (index >= 0) {
            put(ring.buffer(), index, ++seq, EventKind.LOST, lostSinceNs, 0, 0, 0, 0, 0, 0, lostCount, lostFrom, 0);
            ring.commit(index);
            lostCount = 0;
        }
    }

    private static void put(final AtomicBuffer b, final int at, final long seq, final EventKind kind,
        final long timeNs, final int gpu, final int flags, final int taskId, final long ticket, final int contextId,
        final int clientId, final long arg0, final long arg1, final long arg2) {
        b.putLong(at + Abi.Event.SEQ_OFFSET, seq, ByteOrder.LITTLE_ENDIAN);
        b.putLong(at + Abi.Event.TIME_NS_OFFSET, timeNs, ByteOrder.LITTLE_ENDIAN);
        b.putShort(at + Abi.Event.KIND_OFFSET, kind.code(), ByteOrder.LITTLE_ENDIAN);
        b.putByte(at + Abi.Event.GPU_OFFSET, (byte) gpu);
        b.putByte(at + Abi.Event.FLAGS_OFFSET, (byte) flags);
        b.putInt(at + Abi.Event.TASK_ID_OFFSET, taskId, ByteOrder.LITTLE_ENDIAN);
        b.putLong(at + Abi.Event.TICKET_OFFSET, ticket, ByteOrder.LITTLE_ENDIAN);
        b.putInt(at + Abi.Event.CONTEXT_ID_OFFSET, contextId, ByteOrder.LITTLE_ENDIAN);
        b.putInt(at + Abi.Event.CLIENT_ID_OFFSET, clientId, ByteOrder.LITTLE_ENDIAN);
        b.putLong(at + Abi.Event.ARG0_OFFSET, arg0, ByteOrder.LITTLE_ENDIAN);
        b.putLong(at + Abi.Event.ARG1_OFFSET, arg1, ByteOrder.LITTLE_ENDIAN);
        b.putLong(at + Abi.Event.ARG2_OFFSET, arg2, ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * Hands over what was written. Journal thread only.
     *
     * @param handler receives type, buffer, offset, length
     * @param limit   most messages to read
     * @return messages read
     */
    int read(final MessageHandler handler, final int limit) {
        return ring.read(handler, limit);
    }

    /** Where the next event will be written; bytes since the ring is new. Any thread. */
    long writtenTo() {
        return ring.producerPosition();
    }

    /** Where the next event will be read, like {@link #writtenTo}. Any thread. */
    long readTo() {
        return ring.consumerPosition();
    }

    /**
     * Bytes that wait for the journal thread. Any thread; a snapshot.
     *
     * @return 0 if everything was taken
     */
    public int pendingBytes() {
        return ring.size();
    }

    /**
     * Events lost because the ring was full. Any thread.
     *
     * @return count since start
     */
    public long dropped() {
        return dropped;
    }

    /**
     * Sequence number of the last event. Dispatcher thread only.
     *
     * @return 0 if nothing was written yet
     */
    public long lastSeq() {
        return seq;
    }

    @Override
    public void close() {
        IoUtil.unmap(mapped);
    }
}
