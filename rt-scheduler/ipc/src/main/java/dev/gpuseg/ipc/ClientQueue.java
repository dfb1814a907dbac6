/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import dev.gpuseg.ipc.platform.Descriptor;
import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.FaultBarrier;
import dev.gpuseg.ipc.platform.FileAccess;
import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.ipc.platform.SystemCallException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * The queue of one client: a Chronicle queue whose only appender is that client and whose only reader is the
 * dispatcher. Any reader of Chronicle's can follow it; the dispatcher reads the files by itself, from a mapping of each
 * cycle (ADR 61).
 *
 * <p>Cycles are files of fixed size with reserved space. When a third of the current cycle is read, the next one is
 * written completely and announced in the session, so that the client maps it ahead of time. At 60 % the current cycle
 * is ended. It is deleted after the dispatcher has read it to its end.
 *
 * <pre>
 *   dispatcher thread      poll: header word, copy, guard, validate, handler                 (allocates nothing)
 *   housekeeping thread    housekeep: make, announce, end, close and delete cycles
 *   conductor thread       create before, lend meanwhile
 * </pre>
 *
 * <p>The client can write anything into the files at any time. A header word is read once, and only one length is
 * accepted; the record is copied, and the copy is validated. What the client does to a record after that concerns
 * nobody.
 *
 * <p>Access to a truncated file throws {@link InternalError}. For clients of other users than the daemon's this happens
 * within {@link #poll} ({@link FaultBarrier}). For clients of the same user it may happen later and elsewhere on the
 * dispatcher thread; then {@link #isIntact} tells whose file it was.
 *
 * <p>The client cannot remove or replace files, because the directories belong to the daemon. A cycle file is made in a
 * directory that the client cannot enter, and linked into the queue when it is complete.
 */
public final class ClientQueue implements AutoCloseable {
    /** Smallest size of a cycle file. */
    public static final int BYTES_MIN = 1 << 18;
    /** Usual size of a cycle file: 14,000 records. */
    public static final int BYTES_DEFAULT = 1 << 20;
    /** Largest size of a cycle file. */
    public static final int BYTES_MAX = 1 << 28;

    private static final String OWN_DIRECTORY = "own";
    private static final int LOCK_ATTEMPTS = 2_000;
    private static final int PREPARE_PERCENT = 33;
    private static final int ROLL_PERCENT = 60;
    private static final long FULL_RETRY_NS = 50_000_000;

    private final int clientId;
    private final Path directory;
    private final Path ownDirectory;
    private final int uid;
    /** Whether the client belongs to another user. One of the daemon's user could harm the daemon in worse ways. */
    private final boolean guarded;
    private final QueueTemplate template;
    private final MappedPage metadata;
    private final FileChannel metadataChannel;
    private final LentFile lentMetadata;
    private final Session session;
    private final Runnable wakeHousekeeping;
    private final int lockWord;
    private final int prepareAt;
    private final int rollAt;

    // dispatcher thread
    private final RecordView view = new RecordView();
    private final RecordValidator validator = new RecordValidator();
    private RecordCheck check = validator;
    private long records;
    private int poison;
    private String poisonText = "";
    private boolean prepareAsked;
    private boolean rollAsked;

    /** Housekeeping makes and closes cycles; the dispatcher advances from one to the next. */
    private Handover<QueueCycle> cycles;
    /** W dispatcher: how far the current cycle is read. R housekeeping, {@link #usagePercent}. */
    private volatile int position;
    /** W housekeeping: a poison code that it found; the dispatcher adopts it at its next poll. */
    private volatile int housekeepingPoison;
    private volatile String housekeepingText = "";
    /** W dispatcher: the client was dropped, so housekeeping does nothing more. */
    private volatile boolean dropped;
    /** Housekeeping thread: the file system was full. */
    private long prepareNotBeforeNs = System.nanoTime();
    /** W housekeeping. */
    private volatile long rolls;
    private volatile long lastRollNs;
    private volatile boolean closed;

    private ClientQueue(final int clientId, final Path directory, final int uid, final QueueTemplate template,
        final MappedPage metadata, final FileChannel metadataChannel, final LentFile lentMetadata,
        final Session session, final Runnable wakeHousekeeping, final int lockWord) {
        this.clientId = clientId;
        this.directory = directory;
        ownDirectory = directory.resolveSibling(OWN_DIRECTORY);
        this.uid = uid;
        guarded = uid != ProcessStatus.effectiveUid();
        this.template = template;
        this.metadata = metadata;
        this.metadataChannel = metadataChannel;
        this.lentMetadata = lentMetadata;
        this.session = session;
        this.wakeHousekeeping = wakeHousekeeping;
        this.lockWord = lockWord;
        final int start = template.cycle().length;
        final int room = template.bytes() - start;
        prepareAt = start + (int) (room * (long) PREPARE_PERCENT / 100);
        rollAt = start + (int) (room * (long) ROLL_PERCENT / 100);
        position = start;
    }

    /**
     * Makes the queue of a client.
     *
     * @param template         pattern of its files
     * @param clientDirectory  to be made, must not exist; it and {@code queue} in it belong to the daemon, 0750 with
     *                         the client's group; the files belong to the client, 0600
     * @param clientId         the client
     * @param uid              its user
     * @param gid              its group
     * @param daemonPid        marks the queue's lock while a cycle is ended
     * @param session          where cycles are announced
     * @param wakeHousekeeping called on the dispatcher thread (rarely) when {@link #housekeep} has work
     * @return the queue, its first cycle announced
     * @throws dev.gpuseg.ipc.platform.SystemCallException with ENOSPC if the file system is full
     * @throws UncheckedIOException                           if a file cannot be made
     */
    public static ClientQueue create(final QueueTemplate template, final Path clientDirectory, final int clientId,
        final int uid, final int gid, final int daemonPid, final Session session, final Runnable wakeHousekeeping) {
        final Path directory = clientDirectory.resolve("queue");
        MappedPage metadata = null;
        FileChannel metadataChannel = null;
        LentFile lentMetadata = null;
        ClientQueue result = null;
        try {
            final Path own = clientDirectory.resolve(OWN_DIRECTORY);
            Files.createDirectories(clientDirectory);   // its parent exists: one call, and no exception on the way
            Files.createDirectory(directory);
            Files.createDirectory(own);
            FileAccess.chmod(own, 0700);
            final Path metadataPath = directory.resolve(QueueFormat.METADATA);
            Files.createFile(metadataPath);
            Descriptor.allocate(metadataPath, template.metadata().length);
            Files.write(metadataPath, template.metadata(), StandardOpenOption.WRITE);
            final Path first = own.resolve(QueueTemplate.cycleName(0));
            QueueCycle.write(template, first);
            metadata = MappedPage.open(metadataPath, template.metadata().length, true);
            metadataChannel = FileChannel.open(metadataPath, StandardOpenOption.READ);
            lentMetadata = LentFile.open(metadataPath);
            result = new ClientQueue(clientId, directory, uid, template, metadata, metadataChannel, lentMetadata,
                session, wakeHousekeeping, daemonPid);
            result.cycles = new Handover<>(
                QueueCycle.open(template, first, directory.resolve(first.getFileName()), 0, uid));
            for (final Path path : new Path[] {clientDirectory, directory}) {
                FileAccess.chmod(path, 0750);
                if (uid != ProcessStatus.effectiveUid()) {
                    FileAccess.chown(path, -1, gid); // the daemon's own user needs no group, and may not belong to it
                }
            }
            FileAccess.chmod(metadataPath, 0600);
            FileAccess.chown(metadataPath, uid, -1);
            session.preparedCycle(0);
            return result;
        } catch (final IOException | RuntimeException | InternalError e) {
            if (result != null && result.cycles != null) {
                result.cycles.current().close();
            }
            if (lentMetadata != null) {
                lentMetadata.close();
            }
            if (metadata != null) {
                metadata.close();
            }
            try {
                RuntimeDirectory.deleteTree(clientDirectory);
            } catch (final UncheckedIOException left) {   // by the same want of descriptors, say; the cause comes first
                e.addSuppressed(left);
            }
            if (e instanceof IOException) {
                throw new UncheckedIOException(directory + " cannot be made: " + e.getMessage()
                    + "; free space there, lower the queue size, or raise the limit of open files", (IOException) e);
            }
            if (e instanceof RuntimeException) {
                throw (RuntimeException) e;
            }
            throw (InternalError) e;
        }
    }

    /**
     * The client may use a task from now on. Dispatcher thread.
     *
     * @param taskId positive
     */
    public void openTask(final int taskId) {
        validator.openTask(taskId);
    }

    /**
     * The client may no longer use a task; its records still in the queue are skipped. Dispatcher thread.
     *
     * @param taskId the task
     */
    public void closeTask(final int taskId) {
        validator.closeTask(taskId);
    }

    /** Replaces the check of records; for tests whose records mean something else. */
    void check(final RecordCheck other) {
        check = other;
    }

    /**
     * Reads records. Dispatcher thread; allocates nothing unless the client is poisoned.
     *
     * @param handler receives each valid record
     * @param limit   most records, so that one client cannot delay the others
     * @param nowNs   CLOCK_MONOTONIC ns
     * @return records read, or minus a poison code ({@code Abi.POISON_*}, also at every later call; the reason is in
     *         {@link #poisonText}). Records before the violation have been delivered.
     */
    public int poll(final RecordHandler handler, final int limit, final long nowNs) {
        if (poison != 0) {
            return -poison;
        }
        int count = 0;
        QueueCycle cycle = cycles.current();
        int at = position;
        try {
            while (count < limit && poison == 0) {
                final int header = at <= template.bytes() - QueueFormat.HEADER_BYTES ? cycle.header(at) : 0;
                if (header == Abi.Record.SIZE) {
                    if (!isInside(at)) {
                        break;
                    }
                    cycle.copy(at, view.copy());
                    if (guarded) {
                        settle();
                    }
                    at += QueueFormat.DOCUMENT_BYTES;
                    position = at;
                    records++;
                    count++;
                    final int verdict = check.check(view, nowNs);
                    if (verdict > 0) {
                        poison(verdict, check.reason());
                        break;
                    }
                    if (verdict == RecordValidator.VALID) {
                        handler.onRecord(clientId, view);
                    }
                } else if (header == 0) {
                    break;
                } else if (header == QueueFormat.END_OF_DATA) {
                    if (!cycle.isEnding() || !cycles.canAdvance()) {
                        if (!cycle.isEnding()) {
                            poison(Abi.POISON_LENGTH, "end-of-data header at " + at + " that the daemon did not write");
                        }
                        break;
                    }
                    at = template.cycle().length;
                    position = at; // before the cycle, so that housekeeping sees no old position in a new cycle
                    cycle = cycles.advance();
                    prepareAsked = false;
                    rollAsked = false;
                    wakeHousekeeping.run();
                } else {
                    final int length = header & QueueFormat.LENGTH_MASK;
                    if ((header & QueueFormat.NOT_COMPLETE) != 0 && length != 0) {
                        break; // left by a writer that died; the next append replaces it
                    }
                    poison(Abi.POISON_LENGTH, "header 0x" + Integer.toHexString(header) + " at " + at + " of cycle "
                        + cycle.number() + " is not that of a " + Abi.Record.SIZE + "-byte record");
                    break;
                }
            }
            if (guarded && count == 0) {
                settle();
            }
        } catch (final InternalError e) {
            if (isIntact()) {
                throw e; // another client's file
            }
            poison(Abi.POISON_TRUNCATED, "a file of the queue was truncated: " + e.getMessage());
        }
        askForHousekeeping(at);
        if (poison == 0 && housekeepingPoison != 0) {
            poison(housekeepingPoison, housekeepingText);
        }
        return poison != 0 ? -poison : count;
    }

    /** Delivers a pending fault of this queue now. One of another queue waits until the current record is handled. */
    private void settle() {
        try {
            FaultBarrier.settle();
        } catch (final InternalError e) {
            if (!isIntact()) {
                throw e;
            }
            FaultBarrier.postpone(e);
        }
    }

    private void askForHousekeeping(final int at) {
        if (at >= prepareAt && !prepareAsked) {
            prepareAsked = true;
            wakeHousekeeping.run();
        }
        if (at >= rollAt && !rollAsked) {
            rollAsked = true;
            wakeHousekeeping.run();
        }
    }

    private boolean isInside(final int at) {
        if (at > template.bytes() - QueueFormat.DOCUMENT_BYTES) {
            poison(Abi.POISON_QUOTA, "record at " + at + " lies across the end of the file, " + template.bytes());
            return false;
        }
        return true;
    }

    private void poison(final int code, final String text) {
        poison = code;
        poisonText = text;
        dropped = true;
    }

    /**
     * Drops the client for a reason found elsewhere (a foreign message, a fault that {@link #isIntact} traced).
     * Dispatcher thread.
     *
     * @param code {@code Abi.POISON_*}
     * @param text one line
     */
    public void drop(final int code, final String text) {
        if (poison == 0) {
            poison(code, text);
        }
    }

    /**
     * Makes, announces, ends and deletes cycles as far as needed. Housekeeping thread; never waits for the client.
     *
     * @return true if it must be called again soon without a request (the client held the queue's lock)
     */
    public boolean housekeep() {
        if (dropped || closed || housekeepingPoison != 0) {
            return false;
        }
        try {
            final QueueCycle old = cycles.retired();
            if (old != null) {
                old.close();
                metadata.buffer().putLongOrdered(template.lowestCycleOffset(), old.number() + 1L);
                metadata.buffer().getAndAddLong(template.modCountOffset(), 1);
                cycles.reclaimed();
            }
            boolean worked = old != null;
            boolean again = false;
            final QueueCycle cycle = cycles.current();
            if (position >= prepareAt && cycles.next() == null && !cycle.isEnding()
                && System.nanoTime() - prepareNotBeforeNs >= 0) {
                try {
                    cycles.offer(prepare(cycle.number() + 1));
                    session.preparedCycle(cycle.number() + 1L); // after the offer: a client may ask for it at once
                    worked = true;
                } catch (final SystemCallException | UncheckedIOException e) {
                    if (!isForWantOfSpace(e)) {
                        throw e;
                    }
                    // full: the client continues in this cycle and is refused at its end; there may be space by then,
                    // and this thread visits every queue about ten times a second
                    RuntimeDirectory.deleteTree(ownDirectory.resolve(QueueTemplate.cycleName(cycle.number() + 1)));
                    prepareNotBeforeNs = System.nanoTime() + FULL_RETRY_NS;
                }
            }
            final QueueCycle following = cycles.next();
            if (position >= rollAt && following != null && following != cycle && !cycle.isEnded()) {
                again |= !end(cycle);
                worked = true;
            }
            if (worked) {
                FaultBarrier.settle();
                if (!isIntact()) {
                    dropFromHousekeeping("a file of the queue was truncated");
                }
            }
            return again;
        } catch (final InternalError e) {
            if (isIntact()) {
                return true; // the fault of another client's file was delivered here: try again
            }
            dropFromHousekeeping("a file of the queue was truncated: " + e.getMessage());
            return false;
        } catch (final RuntimeException e) {
            dropFromHousekeeping("the queue cannot be rolled: " + e.getMessage());
            return false;
        }
    }

    /** Java's own calls report a full file system as text only: ask for its space before the new file is deleted. */
    private boolean isForWantOfSpace(final RuntimeException e) {
        return e instanceof SystemCallException
            ? ((SystemCallException) e).errno() == Errno.ENOSPC || ((SystemCallException) e).errno() == Errno.EDQUOT
            : FileAccess.freeBytes(ownDirectory) < template.bytes();
    }

    private void dropFromHousekeeping(final String text) {
        housekeepingText = text;
        housekeepingPoison = Abi.POISON_TRUNCATED;
    }

    private QueueCycle prepare(final int number) {
        final String name = QueueTemplate.cycleName(number);
        QueueCycle.write(template, ownDirectory.resolve(name));
        return QueueCycle.open(template, ownDirectory.resolve(name), directory.resolve(name), number, uid);
    }

    /** Ends a cycle under the queue's lock, as an appender of Chronicle's would; false if the lock is held. */
    private boolean end(final QueueCycle cycle) {
        cycle.setEnding();
        final UnsafeBuffer words = metadata.buffer();
        int attempts = 0;
        while (!words.compareAndSetLong(template.writeLockOffset(), QueueFormat.UNLOCKED, lockWord)) {
            if (++attempts > LOCK_ATTEMPTS) {
                return false;
            }
            Thread.onSpinWait();
        }
        final long startNs = System.nanoTime();
        int at = position;
        try {
            // an appender without a session finds the next cycle by this; one that attaches now starts there
            words.putLongOrdered(template.highestCycleOffset(), cycle.number() + 1L);
            words.getAndAddLong(template.modCountOffset(), 1);
            while (at <= template.bytes() - QueueFormat.HEADER_BYTES) {
                final int header = cycle.header(at);
                if (header == 0) {
                    if (cycle.publishEndOfData(at)) {
                        break;
                    }
                } else if (header != Abi.Record.SIZE) {
                    break; // ended already, or forged: the dispatcher will say so
                } else {
                    at += QueueFormat.DOCUMENT_BYTES;
                }
            }
        } finally {
            words.compareAndSetLong(template.writeLockOffset(), lockWord, QueueFormat.UNLOCKED);
        }
        cycle.setEnded();
        lastRollNs = System.nanoTime() - startNs;
        rolls++;
        return true;
    }

    /**
     * Whether all files still have their size. After an {@link InternalError} the dispatcher asks every queue, to find
     * the one that caused it. Makes system calls.
     *
     * @return false if a file was truncated
     */
    public boolean isIntact() {
        final QueueCycle cycle = cycles.current();
        final QueueCycle following = cycles.next();
        try {
            return cycle.isIntact() && (following == null || following.isIntact())
                && metadataChannel.size() >= template.metadata().length;
        } catch (final IOException e) {
            return false;
        }
    }

    /**
     * Why the client was poisoned. Dispatcher thread.
     *
     * @return one line, empty if it was not
     */
    public String poisonText() {
        return poisonText;
    }

    /**
     * The poison code. Dispatcher thread.
     *
     * @return {@code Abi.POISON_*}, 0 = none
     */
    public int poisonCode() {
        return poison;
    }

    /**
     * Records read, valid or not. Dispatcher thread.
     *
     * @return count
     */
    public long records() {
        return records;
    }

    /**
     * Cycles ended so far. Any thread.
     *
     * @return count
     */
    public long rolls() {
        return rolls;
    }

    /**
     * How long the client could not append when the last cycle was ended (the queue's lock was held). Any thread.
     *
     * @return ns
     */
    public long lastRollNs() {
        return lastRollNs;
    }

    /**
     * How much of the current cycle is read. Any thread.
     *
     * @return 0 .. 100
     */
    public int usagePercent() {
        final int start = template.cycle().length;
        return (int) ((position - start) * 100L / (template.bytes() - start));
    }

    /** Where the client appends; the queue's directory. */
    public Path directory() {
        return directory;
    }

    /**
     * A file of this queue, open for reading and writing, for a client that cannot open it by path. Any thread.
     *
     * @param cycle its cycle, or {@link Abi#QUEUE_METADATA}
     * @return a descriptor, which the caller closes; -1 if that is neither the cycle in use nor the one after it, or
     *         the queue is closed
     * @throws SystemCallException with EMFILE when this process has no descriptors left
     */
    public int lend(final long cycle) {
        if (cycle == Abi.QUEUE_METADATA) {
            return lentMetadata.duplicate();
        }
        // in this order: a cycle that becomes the current one between the two looks is seen by the second
        final QueueCycle next = cycles.next();
        final QueueCycle current = cycles.current();
        if (next != null && next.number() == cycle) {
            return next.lend();
        }
        return current.number() == cycle ? current.lend() : -1;
    }

    /** Closes and deletes everything. Conductor thread, after dispatcher and housekeeping have stopped using it. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        for (final QueueCycle cycle : new QueueCycle[] {cycles.retired(), cycles.current(), cycles.next()}) {
            if (cycle != null) {
                cycle.close();
            }
        }
        metadata.close();
        lentMetadata.close();
        final ScratchTree all = new ScratchTree(directory.getParent());
        try (all) {
            metadataChannel.close();
        } catch (final IOException e) {
            throw new UncheckedIOException(directory + " cannot be closed: " + e.getMessage(), e);
        }
    }
}
