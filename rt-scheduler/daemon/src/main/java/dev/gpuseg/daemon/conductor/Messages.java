/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PlainText;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.UnsafeBuffer;

/** Reading and writing of the registration socket's messages. */
final class Messages {
    /** Follows a text of which the end is missing. */
    private static final byte[] CUT = "...".getBytes(StandardCharsets.UTF_8);

    private Messages() {
    }

    /** Checks what every message must have: null, or what is wrong. */
    static String malformed(final Packet packet) {
        final int length = packet.length();
        final UnsafeBuffer data = packet.data();
        if (packet.truncated() || length > Abi.MSG_BYTES_MAX) {
            return "packet is longer than " + Abi.MSG_BYTES_MAX + " bytes";
        }
        if (packet.descriptorCount() > 0) {
            return "packet carries " + packet.descriptorCount() + " descriptors; none are expected";
        }
        if (length < Abi.Msg.SIZE) {
            return "packet has " + length + " bytes, a header has " + Abi.Msg.SIZE;
        }
        if (data.getInt(Abi.Msg.MAGIC_OFFSET) != Abi.MSG_MAGIC) {
            return "magic is 0x" + Integer.toHexString(data.getInt(Abi.Msg.MAGIC_OFFSET));
        }
        if (data.getInt(Abi.Msg.SIZE_OFFSET) != length) {
            return "size says " + data.getInt(Abi.Msg.SIZE_OFFSET) + ", the packet has " + length + " bytes";
        }
        final int type = data.getInt(Abi.Msg.TYPE_OFFSET);
        final int expected;
        switch (type) {
            case Abi.MSG_HELLO -> expected = Abi.MsgHello.SIZE;
            case Abi.MSG_TASK_OPEN -> expected = Abi.MsgTaskOpen.SIZE;
            case Abi.MSG_TASK_CLOSE -> expected = Abi.MsgTaskClose.SIZE;
            case Abi.MSG_QUEUE_FILE -> expected = Abi.MsgQueueFile.SIZE;
            case Abi.MSG_ADMIN -> expected = length < Abi.MsgAdmin.SIZE ? Abi.MsgAdmin.SIZE
                : Abi.MsgAdmin.SIZE + data.getInt(Abi.MsgAdmin.TEXT_SIZE_OFFSET);
            default -> {
                return "unknown message type " + type;
            }
        }
        // a client of another version may send another size of a known message; it is told so, see ConductorAgent
        return length == expected || version(packet) != Abi.ABI_MAJOR ? null
            : "message type " + type + " has " + length + " bytes instead of " + expected;
    }

    static int version(final Packet packet) {
        return packet.data().getInt(Abi.Msg.VERSION_OFFSET) >>> 16;
    }

    /**
     * A text of at most 63 bytes, NUL-terminated, UTF-8, printable, not blank: the text, or null if it is anything
     * else.
     */
    static String name(final UnsafeBuffer data, final int offset) {
        int length = 0;
        while (length < Abi.NAME_BYTES && data.getByte(offset + length) != 0) {
            length++;
        }
        if (length == 0 || length == Abi.NAME_BYTES) {
            return null;
        }
        final String text = utf8(data, offset, length);
        if (text == null || text.isBlank()) {
            return null;
        }
        return text.codePoints().allMatch(PlainText::isPlain) ? text : null;
    }

    /** Strict UTF-8; null if it is not. */
    static String utf8(final UnsafeBuffer data, final int offset, final int length) {
        final byte[] bytes = new byte[length];
        data.getBytes(offset, bytes);
        try {
            return StandardCharsets.UTF_8.newDecoder().onMalformedInput(CodingErrorAction.REPORT)
                .onUnmappableCharacter(CodingErrorAction.REPORT).decode(ByteBuffer.wrap(bytes)).toString();
        } catch (final CharacterCodingException e) {
            return null;
        }
    }

    static void header(final Packet packet, final int type, final int size, final int seq, final int status) {
        final UnsafeBuffer data = packet.data();
        data.setMemory(0, size, (byte) 0);
        data.putInt(Abi.Msg.MAGIC_OFFSET, Abi.MSG_MAGIC);
        data.putInt(Abi.Msg.VERSION_OFFSET, Abi.ABI_VERSION);
        data.putInt(Abi.Msg.TYPE_OFFSET, type);
        data.putInt(Abi.Msg.SIZE_OFFSET, size);
        data.putInt(Abi.Msg.SEQ_OFFSET, seq);
        data.putInt(Abi.Msg.STATUS_OFFSET, status);
        packet.length(size);
        packet.clearDescriptors();
    }

    /**
     * Puts a text into a fixed field. A longer one is cut at a character's boundary and ends with three dots. A NUL
     * follows; the field is zero before.
     */
    static void text(final UnsafeBuffer data, final int offset, final int bytes, final String text) {
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        final boolean fits = utf8.length < bytes;
        int length = fits ? utf8.length : bytes - 1 - CUT.length;
        while (length > 0 && length < utf8.length && (utf8[length] & 0xC0) == 0x80) {
            length--;
        }
        data.putBytes(offset, utf8, 0, length);
        if (!fits) {
            data.putBytes(offset + length, CUT);
        }
    }
}
