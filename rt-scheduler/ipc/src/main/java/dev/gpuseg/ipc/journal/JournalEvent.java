/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.journal;

import dev.gpuseg.ipc.Abi;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.agrona.DirectBuffer;
import org.agrona.MutableDirectBuffer;

/**
 * One journal event as a reader sees it. The same object is reused for every event; {@link #copy} what must stay.
 * Times are CLOCK_MONOTONIC nanoseconds. Not thread-safe.
 */
public final class JournalEvent {
    /** Bytes of {@code struct gpuseg_event}. */
    public static final int BYTES = Abi.Event.SIZE;
    /** More than any event with its text has. */
    public static final int BYTES_MAX = 1 << 20;

    long seq;
    long timeNs;
    int kindCode;
    int gpu;
    int flags;
    int taskId;
    long ticket;
    int contextId;
    int clientId;
    long arg0;
    long arg1;
    long arg2;
    byte[] text = new byte[0];
    int textLength;

    /** An empty event, to be filled by a reader. */
    public JournalEvent() {
        // every field is set by the reader
    }

    /** The sequence number: position in its incarnation, from 1 without gaps. */
    public long seq() {
        return seq;
    }

    /** When it happened; CLOCK_MONOTONIC ns. */
    public long timeNs() {
        return timeNs;
    }

    /** What happened; null if this release does not know the code. */
    public EventKind kind() {
        return EventKind.of(kindCode);
    }

    /** The number of the kind as stored. */
    public int kindCode() {
        return kindCode;
    }

    /** The GPU it concerns; its index, 0 if it does not matter. */
    public int gpu() {
        return gpu;
    }

    /** Flags: bits of {@code enum gpuseg_record_flag}. */
    public int flags() {
        return flags;
    }

    /** The task it concerns; its id, or 0. */
    public int taskId() {
        return taskId;
    }

    /** The segment it concerns; its ticket, or 0. */
    public long ticket() {
        return ticket;
    }

    /** The context it concerns; its id, or 0. */
    public int contextId() {
        return contextId;
    }

    /** The client it concerns; its id, or 0. */
    public int clientId() {
        return clientId;
    }

    /** First argument; see {@link EventKind}. */
    public long arg0() {
        return arg0;
    }

    /** Second argument; see {@link EventKind}. */
    public long arg1() {
        return arg1;
    }

    /** Third argument; see {@link EventKind}. */
    public long arg2() {
        return arg2;
    }

    /** The text that follows the event; empty if there is none. */
    public String text() {
        return new String(text, 0, textLength, StandardCharsets.UTF_8);
    }

    /** An independent copy that stays valid. */
    public JournalEvent copy() {
        final JournalEvent c = new JournalEvent();
        c.seq = seq;
        c.timeNs = timeNs;
        c.kindCode = kindCode;
        c.gpu = gpu;
        c.flags = flags;
        c.taskId = taskId;
        c.ticket = ticket;
        c.contextId = contextId;
        c.clientId = clientId;
        c.arg0 = arg0;
        c.arg1 = arg1;
        c.arg2 = arg2;
        c.text = Arrays.copyOf(text, textLength);
        c.textLength = textLength;
        return c;
    }

    /**
     * Writes it as {@code struct gpuseg_event} with the text that follows it.
     *
     * @param out where to, with {@link #length()} bytes of room
     * @param at  first byte
     */
    public void encode(final MutableDirectBuffer out, final int at) {
        out.putLong(at + Abi.Event.SEQ_OFFSET, seq, ByteOrder.LITTLE_ENDIAN);
        out.putLong(at + Abi.Event.TIME_NS_OFFSET, timeNs, ByteOrder.LITTLE_ENDIAN);
        out.putShort(at + Abi.Event.KIND_OFFSET, (short) kindCode, ByteOrder.LITTLE_ENDIAN);
        out.putByte(at + Abi.Event.GPU_OFFSET, (byte) gpu);
        out.putByte(at + Abi.Event.FLAGS_OFFSET, (byte) flags);
        out.putInt(at + Abi.Event.TASK_ID_OFFSET, taskId, ByteOrder.LITTLE_ENDIAN);
        out.putLong(at + Abi.Event.TICKET_OFFSET, ticket, ByteOrder.LITTLE_ENDIAN);
        out.putInt(at + Abi.Event.CONTEXT_ID_OFFSET, contextId, ByteOrder.LITTLE_ENDIAN);
        out.putInt(at + Abi.Event.CLIENT_ID_OFFSET, clientId, ByteOrder.LITTLE_ENDIAN);
        out.putLong(at + Abi.Event.ARG0_OFFSET, arg0, ByteOrder.LITTLE_ENDIAN);
        out.putLong(at + Abi.Event.ARG1_OFFSET, arg1, ByteOrder.LITTLE_ENDIAN);
        out.putLong(at + Abi.Event.ARG2_OFFSET, arg2, ByteOrder.LITTLE_ENDIAN);
        out.putBytes(at + BYTES, text, 0, textLength);
    }

    /** What {@link #encode} writes; bytes. */
    public int length() {
        return BYTES + textLength;
    }

    /**
     * Reads a {@code struct gpuseg_event} with the text that follows it.
     *
     * @param in     where from
     * @param at     first byte
     * @param length of both, at least {@link #BYTES}
     */
    public void decode(final DirectBuffer in, final int at, final int length) {
        seq = in.getLong(at + Abi.Event.SEQ_OFFSET);
        timeNs = in.getLong(at + Abi.Event.TIME_NS_OFFSET);
        kindCode = in.getShort(at + Abi.Event.KIND_OFFSET) & 0xffff;
        gpu = in.getByte(at + Abi.Event.GPU_OFFSET) & 0xff;
        flags = in.getByte(at + Abi.Event.FLAGS_OFFSET) & 0xff;
        taskId = in.getInt(at + Abi.Event.TASK_ID_OFFSET);
        ticket = in.getLong(at + Abi.Event.TICKET_OFFSET);
        contextId = in.getInt(at + Abi.Event.CONTEXT_ID_OFFSET);
        clientId = in.getInt(at + Abi.Event.CLIENT_ID_OFFSET);
        arg0 = in.getLong(at + Abi.Event.ARG0_OFFSET);
        arg1 = in.getLong(at + Abi.Event.ARG1_OFFSET);
        arg2 = in.getLong(at + Abi.Event.ARG2_OFFSET);
        textLength = length - BYTES;
        if (text.length < textLength) {
            text = new byte[textLength];
        }
        in.getBytes(at + BYTES, text, 0, textLength);
    }

    @Override
    public String toString() {
        final EventKind kind = kind();
        return seq + " " + timeNs + " " + (kind == null ? "kind " + kindCode : kind) + " gpu=" + gpu + " flags=" + flags
            + " task=" + taskId + " ticket=" + ticket + " context=" + contextId + " client=" + clientId
            + " args=" + arg0 + "," + arg1 + "," + arg2 + (textLength == 0 ? "" : " " + text());
    }
}
