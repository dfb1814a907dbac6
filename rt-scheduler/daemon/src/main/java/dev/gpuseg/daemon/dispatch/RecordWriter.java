/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.ipc.Abi;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Stream;
import org.agrona.IoUtil;

/**
 * Appends records to the first file of a client's queue as the C library does, but without its locking and rolling:
 * for {@link WarmUp}, which is the only writer and writes less than a file holds. {@link #close} gives its memory back
 * at once, which a deleted file would keep until the next collection.
 */
public final class RecordWriter implements AutoCloseable {
    private static final int HEADER_BYTES = 4;
    private static final int LENGTH_MASK = 0x3fffffff;

    private final MappedByteBuffer file;
    private int at;
    private long seq;

    /** Opens a client's queue. */
    public RecordWriter(final Path directory) throws IOException {
        final Path cycle;
        try (Stream<Path> files = Files.list(directory)) {
            cycle = files.filter(p -> p.toString().endsWith(".cq4")).findFirst().orElseThrow();
        }
        try (FileChannel channel = FileChannel.open(cycle, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
            file = channel.map(FileChannel.MapMode.READ_WRITE, 0, channel.size());
        }
        file.order(ByteOrder.LITTLE_ENDIAN);
        for (int header = file.getInt(0); header != 0; header = file.getInt(at)) {
            at += HEADER_BYTES + ((header & LENGTH_MASK) + 3 & ~3);
        }
    }

    /** Appends one record. */
    public void write(final int kind, final int flags, final int taskId, final long ticket, final long argNs) {
        write(kind, flags, taskId, ticket, argNs, 0);
    }

    /** Appends one record, which says on which sample a job works. */
    void write(final int kind, final int flags, final int taskId, final long ticket, final long argNs,
        final long sample) {
        final int record = at + HEADER_BYTES;
        file.putShort(record + Abi.Record.KIND_OFFSET, (short) kind);
        file.putShort(record + Abi.Record.FLAGS_OFFSET, (short) flags);
        file.putInt(record + Abi.Record.TASK_ID_OFFSET, taskId);
        file.putLong(record + Abi.Record.SEQ_OFFSET, ++seq);
        file.putLong(record + Abi.Record.TICKET_OFFSET, ticket);
        final long nowNs = System.nanoTime();
        file.putLong(record + Abi.Record.TIME_NS_OFFSET, nowNs);
        file.putLong(record + Abi.Record.RELEASE_NS_OFFSET, (ticket & 1) == 0 ? nowNs : 0);   // 0: not said
        file.putLong(record + Abi.Record.ARG_NS_OFFSET, argNs);
        file.putLong(record + Abi.Record.SAMPLE_OFFSET, sample);
        file.putInt(at, Abi.Record.SIZE);
        at = record + Abi.Record.SIZE;
    }

    /** Nothing may be written after it. */
    @Override
    public void close() {
        IoUtil.unmap(file);
    }
}
