/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Some client queues with their sessions and a housekeeping thread, in shared memory. */
final class QueueRig implements AutoCloseable {
    private static final AtomicInteger NUMBER = new AtomicInteger();

    final Path root = Path.of("/dev/shm", "gpuseg-test-" + ProcessStatus.pid() + "-" + NUMBER.incrementAndGet());
    final QueueTemplate template;
    final List<ClientQueue> queues = new CopyOnWriteArrayList<>();
    final List<Session> sessions = new ArrayList<>();
    private final Semaphore wake = new Semaphore(0);
    private final Thread housekeeping = new Thread(this::housekeep, "test-housekeeping");
    private volatile boolean running = true;

    QueueRig(final int bytes) {
        RuntimeDirectory.resolve(root.toString()).create();
        template = QueueTemplate.create(root.resolve("template"), bytes);
        housekeeping.start();
    }

    ClientQueue add() {
        return add(ProcessStatus.effectiveUid());
    }

    ClientQueue add(final int uid) {
        final int clientId = sessions.size() + 1;
        final Session session = Session.create(clientId, 1);
        final ClientQueue queue = ClientQueue.create(template, root.resolve("clients/" + clientId), clientId,
            uid, ProcessStatus.effectiveGid(), ProcessStatus.pid(), session, wake::release);
        sessions.add(session);
        queues.add(queue);
        return queue;
    }

    private void housekeep() {
        while (running) {
            try {
                wake.tryAcquire(1, TimeUnit.MILLISECONDS);
                wake.drainPermits();
            } catch (final InterruptedException e) {
                return;
            }
            for (final ClientQueue queue : queues) {
                try {
                    queue.housekeep();
                } catch (final InternalError e) {
                    wake.release(); // as HousekeepingAgent does
                }
            }
        }
    }

    /** The file of a queue that is being read. */
    static Path file(final ClientQueue queue, final int cycle) {
        return queue.directory().resolve(QueueTemplate.cycleName(cycle));
    }

    /** Appends documents as a client would that keeps to the format, but not to the rules of records. */
    Raw raw(final ClientQueue queue) {
        return new Raw(file(queue, 0), template.cycle().length);
    }

    /** Writes documents into a cycle file without any lock. */
    static final class Raw {
        private final Path file;
        private int at;

        Raw(final Path file, final int at) {
            this.file = file;
            this.at = at;
        }

        int position() {
            return at;
        }

        void document(final int header, final byte[] payload) {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.write(ByteBuffer.wrap(payload), at + QueueFormat.HEADER_BYTES);
                final ByteBuffer word = ByteBuffer.allocate(4).order(ByteOrder.LITTLE_ENDIAN).putInt(0, header);
                channel.write(word, at);
            } catch (final IOException e) {
                throw new UncheckedIOException(e);
            }
            at += QueueFormat.HEADER_BYTES + payload.length;
        }

        void record(final byte[] record) {
            document(Abi.Record.SIZE, record);
        }
    }

    static byte[] record(final int kind, final int flags, final int taskId, final long seq, final long ticket,
        final long timeNs, final long releaseNs, final long argNs) {
        final ByteBuffer out = ByteBuffer.allocate(Abi.Record.SIZE).order(ByteOrder.LITTLE_ENDIAN);
        out.putShort(Abi.Record.KIND_OFFSET, (short) kind).putShort(Abi.Record.FLAGS_OFFSET, (short) flags);
        out.putInt(Abi.Record.TASK_ID_OFFSET, taskId).putLong(Abi.Record.SEQ_OFFSET, seq);
        out.putLong(Abi.Record.TICKET_OFFSET, ticket).putLong(Abi.Record.TIME_NS_OFFSET, timeNs);
        out.putLong(Abi.Record.RELEASE_NS_OFFSET, releaseNs).putLong(Abi.Record.ARG_NS_OFFSET, argNs);
        return out.array();
    }

    /** For messages of failed assertions. */
    String dump() {
        final StringBuilder text = new StringBuilder();
        for (final ClientQueue queue : queues) {
            text.append("queue ").append(queue.directory()).append(": records ").append(queue.records())
                .append(", rolls ").append(queue.rolls()).append(", used ").append(queue.usagePercent())
                .append(" %, poison ").append(queue.poisonCode()).append(' ').append(queue.poisonText())
                .append(", intact ").append(queue.isIntact()).append('\n');
        }
        return text.toString();
    }

    @Override
    public void close() {
        running = false;
        wake.release();
        try {
            housekeeping.join(20_000);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        if (housekeeping.isAlive()) {   // it would write into what is unmapped below
            throw new IllegalStateException("the housekeeping thread did not end within 20 s");
        }
        for (final ClientQueue queue : queues) {
            queue.close();
        }
        for (final Session session : sessions) {
            session.close();
        }
        RuntimeDirectory.deleteTree(root);
    }
}
