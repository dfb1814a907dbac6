/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.ipc.Abi;
import dev.gpuseg.daemon.ipc.ClientQueue;
import dev.gpuseg.daemon.ipc.HeldFile;
import dev.gpuseg.daemon.ipc.QueueTemplate;
import dev.gpuseg.daemon.ipc.RuntimeDirectory;
import dev.gpuseg.daemon.ipc.Session;
import dev.gpuseg.daemon.ipc.StatusPage;
import dev.gpuseg.daemon.journal.JournalAgent;
import dev.gpuseg.daemon.journal.JournalRing;
import dev.gpuseg.daemon.mechanism.InstantMechanism;
import dev.gpuseg.daemon.platform.EventFd;
import dev.gpuseg.daemon.platform.ProcessStatus;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteOrder;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.stream.Stream;

/**
 * Runs synthetic segments of two processes through a second set of the real objects (queue, dispatcher, scheduler,
 * enforcer, journal) in a scratch directory, until the hot path is compiled. No client is accepted before it is done:
 * otherwise the first segments would pay for it.
 */
final class WarmUp {
    private static final int QUEUE_BYTES = 16 << 20;
    private static final int CLIENTS = 2;
    private static final int BATCH = 8;
    private static final int HEADER_BYTES = 4;
    private static final int LENGTH_MASK = 0x3fffffff;
    private static final long JOURNAL_BYTES = 64L << 20;

    /** Writes records as the C library does, without its locking: it is alone. */
    private static final class Writer {
        private final MappedByteBuffer file;
        private int at;
        private long seq;

        Writer(final Path directory) throws IOException {
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

        void write(final int kind, final int flags, final int taskId, final long ticket) {
            final int record = at + HEADER_BYTES;
            file.putShort(record + Abi.Record.KIND_OFFSET, (short) kind);
            file.putShort(record + Abi.Record.FLAGS_OFFSET, (short) flags);
            file.putInt(record + Abi.Record.TASK_ID_OFFSET, taskId);
            file.putLong(record + Abi.Record.SEQ_OFFSET, ++seq);
            file.putLong(record + Abi.Record.TICKET_OFFSET, ticket);
            file.putLong(record + Abi.Record.TIME_NS_OFFSET, System.nanoTime());
            file.putInt(at, Abi.Record.SIZE);
            at = record + Abi.Record.SIZE;
        }
    }

    /** The conductor's part: remembers the task that was opened last. */
    private static final class Answers implements ConductorProxy {
        private int taskId;
        private String failure = "";

        @Override
        public void taskOpened(final long correlation, final int status, final int id, final int slot,
            final String text) {
            taskId = id;
            failure = text;
        }

        @Override
        public void taskClosed(final long correlation, final int status, final String text) {
            failure = text;
        }

        @Override
        public void poisoned(final int clientId, final int code, final String text) {
            failure = text;
        }

        @Override
        public void clientRemoved(final int clientId) {
            taskId = 0;
        }

        @Override
        public void adminReply(final long correlation, final int status, final String json) {
            failure = json;
        }
    }

    private WarmUp() {
    }

    /**
     * Warms the hot path up. Takes one to three seconds.
     *
     * @param scratch directory to use and delete again
     * @param records how many
     * @return allocated bytes per record in the second half, measured on this thread; -1 if the JVM cannot tell
     * @throws IllegalStateException if the synthetic clients were refused: the daemon would refuse real ones too
     */
    static double run(final Path scratch, final int records) {
        RuntimeDirectory.deleteTree(scratch);
        try {
            Files.createDirectories(scratch);
            return runIn(scratch, records);
        } catch (final IOException e) {
            throw new UncheckedIOException("warm-up in " + scratch + ": " + e.getMessage(), e);
        } finally {
            RuntimeDirectory.deleteTree(scratch);
        }
    }

    private static double runIn(final Path scratch, final int records) throws IOException {
        final JournalRing ring = new JournalRing(scratch.resolve("ring"), JournalRing.DEFAULT_CAPACITY);
        final StatusPage status = StatusPage.create(scratch.resolve("status"), 0, "fp", "none", 0);
        final HeldFile held = HeldFile.openOrCreate(scratch.resolve("held"));
        final Enforcer enforcer = new Enforcer(0, new InstantMechanism(), held, null, CLIENTS, 0, () -> { });
        final DispatcherAgent dispatcher = new DispatcherAgent(new SchedulerConfig(FixedPriority.INSTANCE, 1,
            CLIENTS, CLIENTS, true, true, Unmanaged.BEST_EFFORT), new Enforcer[] {enforcer}, ring, status,
            new Counters(), IdleMode.SPIN);
        final Answers answers = new Answers();
        dispatcher.conductor(answers);
        final QueueTemplate template = QueueTemplate.create(scratch.resolve("template"), QUEUE_BYTES);
        final Writer[] writers = new Writer[CLIENTS];
        final Client[] clients = new Client[CLIENTS];
        final int[] taskIds = new int[CLIENTS];
        final int uid = ProcessStatus.effectiveUid();
        final int gid = ProcessStatus.effectiveGid();
        for (int c = 0; c < CLIENTS; c++) {
            final Session session = Session.create(c + 1, 0);
            final Path directory = scratch.resolve("client" + c);
            final ClientQueue queue = ClientQueue.create(template, directory, c + 1, uid, gid, ProcessStatus.pid(),
                session, () -> { });
            clients[c] = new Client(c + 1, ProcessStatus.pid(), uid, gid, c, "warm-up", session, queue, new EventFd());
            dispatcher.addClient(clients[c]);
            dispatcher.openTask(new TaskOpen(0, c + 1, "warm-up", c, c, 0, true, 0, 1_000_000_000L, 0));
            taskIds[c] = answers.taskId;
            writers[c] = new Writer(queue.directory());
        }
        double allocated = -1;
        try (JournalAgent journal = new JournalAgent(ring, scratch.resolve("journal"), JOURNAL_BYTES)) {
            final int rounds = records / (2 * CLIENTS);
            long before = 0;
            for (int i = 1; i <= rounds; i++) {
                if (i == rounds / 2) {
                    before = ThreadAllocation.bytes();
                }
                round(dispatcher, enforcer, writers, taskIds, i);
                if (i % BATCH == 0) {
                    journal.doWork();
                }
            }
            if (before >= 0) {
                allocated = (ThreadAllocation.bytes() - before) / (records / 2.0);
            }
        }
        if (!answers.failure.isEmpty()) {
            throw new IllegalStateException("warm-up: " + answers.failure);
        }
        for (final Client client : clients) {
            client.queue().close();
            client.session().close();
            client.doorbell().close();
        }
        dispatcher.close();
        held.close();
        status.close();
        ring.close();
        return allocated;
    }

    /** Each task begins and ends once; the second one is the better and preempts the first. */
    private static void round(final DispatcherAgent dispatcher, final Enforcer enforcer, final Writer[] writers,
        final int[] taskIds, final int ticket) {
        final int flags = (ticket & 1) == 0 ? Abi.FLAG_OPTIMISTIC : 0;
        for (int c = 0; c < CLIENTS; c++) {
            writers[c].write(Abi.RECORD_BEGIN, flags, taskIds[c], ticket);
            dispatcher.cycle();
            enforcer.cycle(System.nanoTime());
            dispatcher.cycle();
        }
        for (int c = CLIENTS - 1; c >= 0; c--) {
            writers[c].write(Abi.RECORD_END, 0, taskIds[c], ticket);
            dispatcher.cycle();
            enforcer.cycle(System.nanoTime());
            dispatcher.cycle();
        }
    }
}
