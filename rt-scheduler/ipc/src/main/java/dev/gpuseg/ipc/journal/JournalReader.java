/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.Abi;
import java.nio.file.Path;
import net.openhft.chronicle.bytes.Bytes;
import net.openhft.chronicle.queue.ExcerptTailer;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import net.openhft.chronicle.wire.DocumentContext;

/**
 * Reads a journal, also while the daemon writes it. Never changes it. An event that a killed daemon left twice is
 * delivered once. One thread.
 */
public final class JournalReader implements AutoCloseable {
    /** Receives events in journal order. */
    @FunctionalInterface
    public interface Handler {
        /**
         * One event.
         *
         * @param event reused for the next one; {@link JournalEvent#copy} what must stay
         */
        void onEvent(JournalEvent event);
    }

    private final SingleChronicleQueue queue;
    private final ExcerptTailer tailer;
    private final JournalEvent event = new JournalEvent();
    private long lastSeq = Long.MIN_VALUE;
    private String lastStart = "";

    /**
     * Opens a journal at its first event.
     *
     * @param directory its directory
     * @throws IllegalArgumentException if there is no journal, or files of another kind
     */
    public JournalReader(final Path directory) {
        JournalFiles.require(directory);
        queue = JournalWriter.builder(directory).readOnly(true).build();
        tailer = queue.createTailer();
        tailer.singleThreadedCheckDisabled(true);
    }

    /**
     * Delivers every event that a journal holds at the time of the call.
     *
     * @param directory its directory
     * @param handler   receives the events
     * @return how many there were
     */
    public static long forEach(final Path directory, final Handler handler) {
        try (JournalReader reader = new JournalReader(directory)) {
            return reader.drain(handler);
        }
    }

    /**
     * Delivers what was appended since the last call, up to the end at the time of this one: it returns, however fast
     * the journal grows.
     *
     * @param handler receives the events
     * @return events read
     */
    public long drain(final Handler handler) {
        final long last = queue.lastIndex();   // -1: there is none
        long read = 0;
        while (tailer.index() <= last && poll(handler, 1) > 0) {
            read++;
        }
        return read;
    }

    /**
     * Delivers what was appended since the last call.
     *
     * @param handler receives the events
     * @param limit   most events to read
     * @return events read
     */
    public int poll(final Handler handler, final int limit) {
        int read = 0;
        while (read < limit) {
            try (DocumentContext document = tailer.readingDocument()) {
                if (!document.isPresent()) {
                    break;
                }
                final Bytes<?> in = document.wire().bytes();
                if (in.readRemaining() < JournalEvent.BYTES || in.readRemaining() > JournalEvent.BYTES_MAX) {
                    continue;   // not an event: written by another program
                }
                decode(in);
            }
            if (isRepeated()) {
                continue;
            }
            handler.onEvent(event);
            read++;
        }
        return read;
    }

    /**
     * A daemon that was killed between appending an event and removing it from the ring leaves it in both; its
     * successor appends it again.
     */
    private boolean isRepeated() {
        if (event.kindCode == Abi.EVENT_START) {
            final String start = event.timeNs + event.text();   // the text holds the incarnation
            if (start.equals(lastStart)) {
                return true;
            }
            lastStart = start;
        } else if (event.seq <= lastSeq) {
            return true;
        }
        lastSeq = event.seq;
        return false;
    }

    private void decode(final Bytes<?> in) {
        final long at = in.readPosition();
        event.seq = in.readLong(at + Abi.Event.SEQ_OFFSET);
        event.timeNs = in.readLong(at + Abi.Event.TIME_NS_OFFSET);
        event.kindCode = in.readUnsignedShort(at + Abi.Event.KIND_OFFSET);
        event.gpu = in.readUnsignedByte(at + Abi.Event.GPU_OFFSET);
        event.flags = in.readUnsignedByte(at + Abi.Event.FLAGS_OFFSET);
        event.taskId = in.readInt(at + Abi.Event.TASK_ID_OFFSET);
        event.ticket = in.readLong(at + Abi.Event.TICKET_OFFSET);
        event.contextId = in.readInt(at + Abi.Event.CONTEXT_ID_OFFSET);
        event.clientId = in.readInt(at + Abi.Event.CLIENT_ID_OFFSET);
        event.arg0 = in.readLong(at + Abi.Event.ARG0_OFFSET);
        event.arg1 = in.readLong(at + Abi.Event.ARG1_OFFSET);
        event.arg2 = in.readLong(at + Abi.Event.ARG2_OFFSET);
        in.readPosition(at + JournalEvent.BYTES);
        final int length = (int) in.readRemaining();
        if (event.text.length < length) {
            event.text = new byte[length];
        }
        for (int i = 0; i < length; i++) {
            event.text[i] = in.readByte();
        }
        event.textLength = length;
    }

    @Override
    public void close() {
        tailer.close();
        queue.close();
    }
}
