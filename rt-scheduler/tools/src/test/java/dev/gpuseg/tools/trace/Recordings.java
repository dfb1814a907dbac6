/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;

/** Plants faults: reads a recording, lets a test change its events, writes another. Makes jobs of their own. */
public final class Recordings {
    private static final ByteOrder LE = ByteOrder.LITTLE_ENDIAN;

    private Recordings() {
    }

    /**
     * One job of task 1 of client 1 on GPU 0, marked, with a segment that has the GPU for the first 2 ms.
     *
     * @param ring       takes its events
     * @param ticket     of the segment
     * @param releaseNs  when it begins, too
     * @param responseNs from there to its end
     */
    static void job(final JournalRing ring, final long ticket, final long releaseNs, final long responseNs) {
        final long doneNs = releaseNs + 2_000_000;
        final long endNs = releaseNs + responseNs;
        ring.write(EventKind.RELEASE, releaseNs, 0, 0, 1, 0, 1, 1, releaseNs, 0, 0);
        ring.write(EventKind.BEGIN, releaseNs, 0, 0, 1, ticket, 1, 1, releaseNs, releaseNs, 0);
        ring.write(EventKind.DECIDED, releaseNs, 0, 0, 1, ticket, 1, 1, 0, 0, 0);
        ring.write(EventKind.GRANT, releaseNs, 0, 0, 1, ticket, 1, 1, 0, 0, 0);
        ring.write(EventKind.END, doneNs, 0, 0, 1, ticket, 1, 1, doneNs, 1_000_000, 0);
        ring.write(EventKind.JOB_END, endNs, 0, 0, 1, 0, 1, 1, endNs, responseNs, 0);
    }

    /** All events. */
    public static List<JournalEvent> events(final Path recording) throws IOException {
        final List<JournalEvent> all = new ArrayList<>();
        Source.open(recording).forEach(event -> all.add(event.copy()));
        return all;
    }

    /** Writes events as they are. */
    public static Path write(final List<JournalEvent> events, final Path to) throws IOException {
        try (RecordingWriter writer = new RecordingWriter(to)) {
            for (final JournalEvent event : events) {
                writer.add(event);
            }
            writer.finish("");
        }
        return to;
    }

    /** Writes events with new numbers, so that what was taken out does not show as lost. */
    public static Path writeNumbered(final List<JournalEvent> events, final Path to) throws IOException {
        final List<JournalEvent> numbered = new ArrayList<>();
        long seq = 0;
        for (final JournalEvent event : events) {
            seq = event.kind() == EventKind.START ? 1 : seq + 1;
            numbered.add(with(event, Abi.Event.SEQ_OFFSET, seq));
        }
        return write(numbered, to);
    }

    /** The event with another 64-bit field. */
    public static JournalEvent with(final JournalEvent event, final int offset, final long value) {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[event.length()]);
        event.encode(buffer, 0);
        buffer.putLong(offset, value, LE);
        final JournalEvent changed = new JournalEvent();
        changed.decode(buffer, 0, event.length());
        return changed;
    }

    /** The event with another text. */
    public static JournalEvent withText(final JournalEvent event, final String text) {
        final byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[Math.max(event.length(), JournalEvent.BYTES
            + utf8.length)]);
        event.encode(buffer, 0);
        buffer.putBytes(JournalEvent.BYTES, utf8);
        final JournalEvent changed = new JournalEvent();
        changed.decode(buffer, 0, JournalEvent.BYTES + utf8.length);
        return changed;
    }

    /** The event as one of another kind. */
    public static JournalEvent withKind(final JournalEvent event, final EventKind kind) {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[event.length()]);
        event.encode(buffer, 0);
        buffer.putShort(Abi.Event.KIND_OFFSET, kind.code(), LE);
        buffer.putInt(Abi.Event.TASK_ID_OFFSET, 0, LE);
        final JournalEvent changed = new JournalEvent();
        changed.decode(buffer, 0, event.length());
        return changed;
    }

    /** The event without flags. */
    public static JournalEvent withoutFlags(final JournalEvent event) {
        final UnsafeBuffer buffer = new UnsafeBuffer(new byte[event.length()]);
        event.encode(buffer, 0);
        buffer.putByte(Abi.Event.FLAGS_OFFSET, (byte) 0);
        final JournalEvent changed = new JournalEvent();
        changed.decode(buffer, 0, event.length());
        return changed;
    }
}
