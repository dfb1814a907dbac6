/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.client;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.Packet;
import dev.gpuseg.ipc.platform.PlainText;
import dev.gpuseg.ipc.platform.SeqPacketSocket;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.ByteArrayOutputStream;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import org.agrona.concurrent.UnsafeBuffer;

/** Asks a running daemon through its socket. One request per instance. */
public final class AdminClient {
    private static final ByteOrder LE = ByteOrder.LITTLE_ENDIAN;
    private static final int TIMEOUT_MS = 5_000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final int ANSWER_MAX = 64 << 20;

    /** The daemon says that the request itself is wrong: an unknown name, a value out of range. */
    public static final class InvalidRequestException extends IllegalStateException {
        private static final long serialVersionUID = 1L;

        InvalidRequestException(final String message) {
            super(message);
        }
    }

    /** No daemon answers. */
    public static final class NoDaemonException extends IllegalStateException {
        private static final long serialVersionUID = 1L;

        NoDaemonException(final String message, final Throwable cause) {
            super(message, cause);
        }
    }

    /** A daemon runs, and this user may not ask it. */
    public static final class NotServedException extends IllegalStateException {
        private static final long serialVersionUID = 1L;
        private final String remedy;

        NotServedException(final String what, final String remedy, final Throwable cause) {
            super(what + ": " + remedy, cause);
            this.remedy = remedy;
        }

        /** What to do; a part of the message. */
        public String remedy() {
            return remedy;
        }
    }

    private AdminClient() {
    }

    /** A request without arguments, to be completed; the command is status, stop, policy or hint. */
    public static ObjectNode command(final String command) {
        return JsonNodeFactory.instance.objectNode().put("command", command);
    }

    /**
     * Asks and waits for the answer.
     *
     * @param directory of the daemon
     * @param request   the command
     * @return the answer
     * @throws NoDaemonException       if none runs there
     * @throws NotServedException      if this user may not ask it
     * @throws InvalidRequestException if it cannot make sense of the request
     * @throws IllegalStateException   if it refused, with its reason
     */
    public static JsonNode ask(final RuntimeDirectory directory, final ObjectNode request) {
        final SeqPacketSocket socket;
        try {
            socket = SeqPacketSocket.connect(directory.socket(), TIMEOUT_MS);
        } catch (final SystemCallException e) {
            throw NoAnswer.of(directory, e);
        }
        try (socket) {
            if (!directory.mayServe(socket.peerCredentials().uid())) {
                throw new IllegalStateException("who listens at " + directory.socket() + " is neither root nor this "
                    + "user; name the directory with --dir if it is to be trusted");
            }
            final Packet packet = new Packet(Abi.MSG_BYTES_MAX);
            send(socket, packet, request.toString().getBytes(StandardCharsets.UTF_8));
            return receive(socket, packet);
        }
    }

    /**
     * One counter of the answer to {@code status}.
     *
     * @param status the answer
     * @param label  name of the counter
     * @return its value
     * @throws IllegalArgumentException if there is no such counter
     */
    public static long counter(final JsonNode status, final String label) {
        for (final JsonNode counter : status.path("counters")) {
            if (label.equals(counter.path("label").asText())) {
                return counter.path("value").asLong();
            }
        }
        throw new IllegalArgumentException("no counter " + label);
    }

    private static void send(final SeqPacketSocket socket, final Packet packet, final byte[] text) {
        final UnsafeBuffer out = packet.data();
        final int size = Abi.MsgAdmin.SIZE + text.length;
        out.setMemory(0, Abi.MsgAdmin.SIZE, (byte) 0);
        out.putInt(Abi.Msg.MAGIC_OFFSET, Abi.MSG_MAGIC, LE);
        out.putInt(Abi.Msg.VERSION_OFFSET, Abi.ABI_VERSION, LE);
        out.putInt(Abi.Msg.TYPE_OFFSET, Abi.MSG_ADMIN, LE);
        out.putInt(Abi.Msg.SIZE_OFFSET, size, LE);
        out.putInt(Abi.Msg.SEQ_OFFSET, 1, LE);
        out.putInt(Abi.MsgAdmin.TEXT_SIZE_OFFSET, text.length, LE);
        out.putBytes(Abi.MsgAdmin.SIZE, text);
        packet.length(size);
        if (socket.send(packet) != size) {
            throw new IllegalStateException("the daemon closed the connection; see its messages");
        }
    }

    /** Whoever answers writes no more than text: a directory that was named may have a daemon of anybody. */
    private static JsonNode plain(final JsonNode node) {
        if (node instanceof ObjectNode object) {
            object.fieldNames().forEachRemaining(name -> object.replace(name, plain(object.get(name))));
        } else if (node instanceof ArrayNode array) {
            for (int i = 0; i < array.size(); i++) {
                array.set(i, plain(array.get(i)));
            }
        } else if (node.isTextual()) {
            return JsonNodeFactory.instance.textNode(PlainText.lines(node.asText()));
        }
        return node;
    }

    private static JsonNode receive(final SeqPacketSocket socket, final Packet packet) {
        final ByteArrayOutputStream text = new ByteArrayOutputStream();
        boolean more = true;
        int status = 0;
        while (more) {
            final int n = socket.receive(packet);
            if (n < Abi.MsgAdminReply.SIZE) {
                throw new IllegalStateException(n == SeqPacketSocket.NOTHING
                    ? "the daemon did not answer within " + TIMEOUT_MS + " ms; is it stopped or overloaded?"
                    : "the daemon closed the connection; see its messages");
            }
            final UnsafeBuffer in = packet.data();
            status = in.getInt(Abi.Msg.STATUS_OFFSET, LE);
            final int bytes = Math.min(in.getInt(Abi.MsgAdminReply.TEXT_SIZE_OFFSET, LE), n - Abi.MsgAdminReply.SIZE);
            final byte[] part = new byte[Math.max(0, bytes)];
            in.getBytes(Abi.MsgAdminReply.SIZE, part);
            text.writeBytes(part);
            more = in.getInt(Abi.MsgAdminReply.MORE_OFFSET, LE) == 1;
            if (more && part.length == 0 || text.size() > ANSWER_MAX) {
                throw new IllegalStateException("the daemon's answer is longer than " + ANSWER_MAX
                    + " bytes, or has an empty part; it is no answer of gpuseg");
            }
        }
        final String json = text.toString(StandardCharsets.UTF_8);
        final JsonNode answer;
        try {
            answer = plain(JSON.readTree(json));
        } catch (final JsonProcessingException e) {
            throw new IllegalStateException("the daemon's answer is not JSON: " + e.getOriginalMessage(), e);
        }
        if (status != 0) {
            final String why = answer.path("error").asText("the daemon refused with errno " + -status);
            throw status == -Errno.EINVAL ? new InvalidRequestException(why) : new IllegalStateException(why);
        }
        return answer;
    }
}
