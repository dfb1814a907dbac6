/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.ConductorProxy;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.dispatch.Counters;
import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.daemon.dispatch.RecordWriter;
import dev.gpuseg.daemon.enforce.Enforcer;
import dev.gpuseg.daemon.enforce.IdleMode;
import dev.gpuseg.daemon.jvm.ThreadAllocation;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.ipc.QueueTemplate;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.ipc.StatusPage;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.ipc.platform.EventFd;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.gate.InstantMechanism;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs synthetic segments of several processes through a second set of the real objects (queue, dispatcher, scheduler,
 * enforcer, journal) in a scratch directory, until the hot path is compiled. No client is accepted before it is done:
 * otherwise the first segments would pay for it.
 *
 * <p>What is compiled is what was seen: a branch that the warm-up never takes costs the first real segment that takes
 * it an interpreted cycle and the compiler's time. So tasks with and without deadline and budget, alone, preempting,
 * waiting and late ones are played, with the enforcer at once and later, under the daemon's own policy. So is a member
 * of the group with limits who writes whatever there is, in any order and many at a time: else the first flood would
 * keep dispatcher and compiler busy for seconds, and the kernel lets real-time threads have 95 % of a processor only.
 */
final class WarmUp {
    /** Holds the records of the busiest client, about half of all; the /dev/shm of a container has 64 MiB. */
    private static final int QUEUE_BYTES = 4 << 20;
    private static final int BATCH = 8;
    /** Each eighth round of each play is one that is rare in reality. */
    private static final int RARE = 8;
    private static final long SECOND_NS = 1_000_000_000L;
    private static final long COMPILER_LIMIT_NS = SECOND_NS;
    private static final long COMPILER_QUIET_MS = 20;
    /** Who takes part: one process each. */
    private static final int TIGHT = 0;
    private static final int LOW = 1;
    private static final int HIGH = 2;
    private static final int BACKGROUND = 3;
    private static final int MEMBER = 4;
    private static final int CLIENTS = 5;
    /** Each ninth round is the member's. */
    private static final int CROWD = 9;
    private static final int CROWD_TASKS = 4;
    private static final int CROWD_RECORDS = 16;
    private static final int CROWD_KINDS = 6;
    private static final long CROWD_RATE = 200_000;
    private static final int CROWD_SHARE = 50;
    private static final long SOON_NS = 2_000_000;
    private static final long JOURNAL_BYTES = 64L << 20;

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

    /** The enforcer's calls are compiled for more than one mechanism; the last is as near the real one as can be. */
    private static Mechanism[] mechanisms(final Mechanism real) {
        final Mechanism rehearsal = real.rehearsal();
        return new Mechanism[] {new InstantMechanism(), new InstantMechanism() { },
            rehearsal == null ? new InstantMechanism() { } : rehearsal};
    }

    private final DispatcherAgent dispatcher;
    private final Enforcer enforcer;
    private final RecordWriter[] writers = new RecordWriter[CLIENTS];
    /** Of the first four one task each, then those of the member. */
    private final int[] taskIds = new int[MEMBER + CROWD_TASKS];
    private final long[] tickets = new long[MEMBER + CROWD_TASKS];
    /** The same play each time. */
    private final SplittableRandom random = new SplittableRandom(1);
    /** The member's tasks that have begun, a bit each. */
    private int crowdBegun;

    private WarmUp(final DispatcherAgent dispatcher, final Enforcer enforcer) {
        this.dispatcher = dispatcher;
        this.enforcer = enforcer;
    }

    /**
     * Warms the hot path up. Takes one to three seconds.
     *
     * @param scratch    directory to use and delete again
     * @param records    about how many
     * @param policy     of the daemon; of time partitions, what decides inside their windows is played
     * @param real       the daemon's mechanism: what it offers to practise on is used
     * @return bytes that dispatcher and enforcer allocated per record in the second half; -1 if the JVM cannot tell
     * @throws IllegalStateException if the synthetic clients were refused: the daemon would refuse real ones too
     */
    static double run(final Path scratch, final int records, final Policy policy, final Mechanism real) {
        final boolean preemptive = real.capabilities().preemptive();
        final Mechanism[] mechanisms = mechanisms(real);
        // one that looks at the clock could keep the synthetic clients waiting for ever
        final Policy played = policy.ordering().isTimed()
            ? PolicyCatalog.builtIn().standard() : policy.ordering();
        double allocated = -1;
        for (final Mechanism mechanism : mechanisms) {
            RuntimeDirectory.deleteTree(scratch);
            try (ScratchTree tree = new ScratchTree(scratch); mechanism) {
                Files.createDirectories(tree.path());
                allocated = runIn(scratch, records / mechanisms.length, played, preemptive, mechanism);
            } catch (final IOException e) {
                throw new UncheckedIOException("warm-up in " + scratch + ": " + e.getMessage(), e);
            }
        }
        awaitCompiler();
        return allocated;
    }

    /** What was found hot is compiled in the background, and the next client would find it interpreted. */
    private static void awaitCompiler() {
        final CompilationMXBean compiler = ManagementFactory.getCompilationMXBean();
        if (compiler == null || !compiler.isCompilationTimeMonitoringSupported()) {
            return;
        }
        final long limitNs = System.nanoTime() + COMPILER_LIMIT_NS;
        long before = -1;
        while (before != compiler.getTotalCompilationTime() && System.nanoTime() < limitNs) {
            before = compiler.getTotalCompilationTime();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(COMPILER_QUIET_MS));
        }
    }

    /** Task {@code number} of {@link #taskIds}. */
    private static TaskOpen task(final int number) {
        final int id = client(number) + 1;
        switch (number) {
            case TIGHT:   // misses and overruns each time
                return new TaskOpen(0, id, "warm-up", 1, 1, 0, true, SECOND_NS, 1, 1, OverrunAction.NOTIFY, 1, 0, 0, 0);
            case LOW:
                return new TaskOpen(0, id, "warm-up", 2, 2, 0, true, SECOND_NS, SECOND_NS, SECOND_NS);
            case HIGH:
                return new TaskOpen(0, id, "warm-up", 3, 3, 0, true, 0, SECOND_NS, 0);
            case BACKGROUND:
                return new TaskOpen(0, id, "warm-up", 0, 0, 0, true, 0, 0, 0);
            default:
                final int priority = number % 2;
                return new TaskOpen(0, id, "warm-up-" + number, priority, priority, 0, true, 0, 0, SECOND_NS,
                    OverrunAction.DEMOTE, 0, 0, 0, 0, SECOND_NS, CROWD_SHARE, 0);
        }
    }

    private static int client(final int task) {
        return Math.min(task, MEMBER);
    }

    private static double runIn(final Path scratch, final int records, final Policy policy, final boolean preemptive,
        final Mechanism mechanism) throws IOException {
        final JournalRing ring = new JournalRing(scratch.resolve("ring"), JournalRing.DEFAULT_CAPACITY);
        final StatusPage status = StatusPage.create(scratch.resolve("status"), 0, policy.name(), "none", 0);
        final HeldFile held = HeldFile.openOrCreate(scratch.resolve("held"));
        final Enforcer enforcer = new Enforcer(0, mechanism, held, null, CLIENTS, 0, IdleMode.SLEEP,
            () -> { });
        final DispatcherAgent dispatcher = new DispatcherAgent(new SchedulerConfig(policy, 1, MEMBER + CROWD_TASKS,
            CLIENTS, preemptive, true, Unmanaged.BEST_EFFORT), new Enforcer[] {enforcer}, ring, status, new Counters(),
            IdleMode.SPIN);
        final WarmUp play = new WarmUp(dispatcher, enforcer);
        final Answers answers = new Answers();
        dispatcher.conductor(answers);
        final QueueTemplate template = QueueTemplate.create(scratch.resolve("template"), QUEUE_BYTES);
        final Client[] clients = new Client[CLIENTS];
        final int uid = ProcessStatus.effectiveUid();
        final int gid = ProcessStatus.effectiveGid();
        for (int c = 0; c < CLIENTS; c++) {
            final Session session = Session.create(c + 1, 0);
            final Path directory = scratch.resolve("client" + c);
            final ClientQueue queue = ClientQueue.create(template, directory, c + 1, uid, gid, ProcessStatus.pid(),
                session, () -> { });
            clients[c] = new Client(c + 1, ProcessStatus.pid(), uid, gid, c, "warm-up", session, queue, new EventFd(),
                c == MEMBER ? CROWD_RATE : Long.MAX_VALUE);
            dispatcher.clients().add(clients[c]);
            play.writers[c] = new RecordWriter(queue.directory());
        }
        for (int t = 0; t < play.taskIds.length; t++) {
            dispatcher.clients().openTask(task(t));
            play.taskIds[t] = answers.taskId;
        }
        final double allocated;
        try (JournalAgent journal = new JournalAgent(ring, scratch.resolve("journal"), JOURNAL_BYTES)) {
            allocated = play.rounds(records, journal);
        }
        if (!answers.failure.isEmpty()) {
            throw new IllegalStateException("warm-up: " + answers.failure);
        }
        for (final RecordWriter writer : play.writers) {
            writer.close();
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

    /** Returns the bytes allocated per record in the second half; the journal's, for each file it opens, left out. */
    private double rounds(final int records, final JournalAgent journal) {
        long played = 0;
        long playedBefore = 0;
        long hotPath = -1;
        for (int i = 0; played < records; i++) {
            if (hotPath < 0 && played >= records / 2) {
                hotPath = 0;
                playedBefore = played;
            }
            if (hotPath < 0 && i % BATCH == 0) {
                commands();   // they may allocate
            }
            final long before = ThreadAllocation.bytes();
            played += round(i);
            if (hotPath >= 0) {
                hotPath += ThreadAllocation.bytes() - before;
            }
            if (i % BATCH == 0) {
                journal.doWork();
            }
        }
        return ThreadAllocation.bytes() < 0 ? -1 : hotPath / (double) (played - playedBefore);
    }

    private int round(final int i) {
        if (i % CROWD == 0) {
            return crowd();
        }
        switch (i & 3) {
            case 0:
                return alone(i % RARE == 0 ? TIGHT : HIGH, (i & 4) == 0);
            case 1:
                return alone(LOW, (i & 4) == 0);
            case 2:
                return preempting((i & 4) == 0 ? BACKGROUND : LOW, (i & 8) == 0);
            default:
                return waiting((i & 4) == 0 ? BACKGROUND : LOW, (i & 8) == 0);
        }
    }

    private int alone(final int client, final boolean optimistic) {
        write(client, Abi.RECORD_RELEASE, 0, System.nanoTime());
        begin(client, optimistic);
        enforced();
        end(client);
        write(client, Abi.RECORD_JOB_END, 0, 0);
        enforced();
        return 4;
    }

    /** The better one takes the GPU from the other, and gives it back. */
    private int preempting(final int lower, final boolean optimistic) {
        begin(lower, optimistic);
        enforced();
        begin(HIGH, !optimistic);
        idle();   // the enforcer takes its time
        enforced();
        end(HIGH);
        enforced();
        end(lower);
        enforced();
        return 4;
    }

    private int waiting(final int lower, final boolean withHint) {
        int written = 4;
        if (withHint) {
            write(HIGH, Abi.RECORD_HINT, 0, System.nanoTime());
            enforced();
            written++;
        }
        begin(HIGH, true);
        begin(lower, false);
        enforced();
        end(HIGH);
        idle();
        enforced();
        end(lower);
        enforced();
        return written;
    }

    /** What a program of many threads writes that does not care: any record of any of its tasks. */
    private int crowd() {
        for (int i = 0; i < CROWD_RECORDS; i++) {
            final int task = random.nextInt(CROWD_TASKS);
            crowd(MEMBER + task, 1 << task);
            if (random.nextInt(CROWD_TASKS) == 0) {
                enforced();
            }
        }
        enforced();
        return CROWD_RECORDS;
    }

    private void crowd(final int task, final int begun) {
        switch (random.nextInt(CROWD_KINDS)) {
            case 0:
                append(task, Abi.RECORD_HINT, 0, System.nanoTime() + random.nextLong(SOON_NS));
                break;
            case 1:
                append(task, Abi.RECORD_HINT, 0, System.nanoTime() + random.nextLong(CLIENTS * SECOND_NS));
                break;
            case 2:
                append(task, Abi.RECORD_RELEASE, 0, System.nanoTime());
                break;
            default:
                if ((crowdBegun & begun) != 0) {
                    append(task, Abi.RECORD_END, random.nextInt(2) * Abi.FLAG_CANCELLED, 0);
                } else {
                    tickets[task]++;
                    append(task, Abi.RECORD_BEGIN, random.nextInt(2) * Abi.FLAG_OPTIMISTIC, 0);
                }
                crowdBegun ^= begun;
        }
    }

    private void begin(final int client, final boolean optimistic) {
        tickets[client]++;
        write(client, Abi.RECORD_BEGIN, optimistic ? Abi.FLAG_OPTIMISTIC : 0, 0);
    }

    private void end(final int client) {
        write(client, Abi.RECORD_END, 0, 0);
    }

    private void write(final int client, final int kind, final int flags, final long argNs) {
        append(client, kind, flags, argNs);
        dispatcher.turn();
    }

    private void append(final int task, final int kind, final int flags, final long argNs) {
        final long ticket = kind == Abi.RECORD_BEGIN || kind == Abi.RECORD_END ? tickets[task] : 0;
        writers[client(task)].write(kind, flags, taskIds[task], ticket, argNs);
    }

    private void enforced() {
        enforcer.cycle(System.nanoTime());
        dispatcher.turn();
        dispatcher.turn();
    }

    private void idle() {
        dispatcher.turn();
        dispatcher.turn();
    }

    /** Three kinds, so that the call is compiled for any. */
    private void commands() {
        dispatcher.submit(dispatcher::wake);
        dispatcher.submit(this::idle);
        dispatcher.submit(this::enforced);
        idle();
        enforced();
    }
}
