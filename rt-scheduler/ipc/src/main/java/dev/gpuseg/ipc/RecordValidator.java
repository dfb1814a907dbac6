/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import org.agrona.collections.Int2IntHashMap;
import org.agrona.concurrent.UnsafeBuffer;

/**
 * Decides whether a copied record may be used: kind, flags, reserved fields, order, ownership of the task, ticket,
 * times. Remembers what this client has sent so far. One thread; allocates nothing per record.
 *
 * <p>If a task was closed while records of it were still in the queue, these records are skipped and counted
 * ({@link #STALE}); the client did nothing wrong.
 */
public final class RecordValidator implements RecordCheck {
    /** The record may be used. */
    public static final int VALID = 0;
    /** The record belongs to a task that has been closed: skip it. */
    public static final int STALE = -1;
    /** How far a time may lie in the future, ns. */
    public static final long FUTURE_LIMIT_NS = 10_000_000_000L;

    private static final int CLOSED = -2;
    private static final int MISSING = -1;
    private static final long DEADLINE_LIMIT_NS = Long.MAX_VALUE / 2;
    private static final long TICKET_LIMIT = 1L << 55; // a grant word holds ticket << 8, kept positive

    private final Int2IntHashMap indexByTask = new Int2IntHashMap(MISSING);
    private final long[] lastTicket = new long[Abi.SLOTS_MAX];
    private final boolean[] open = new boolean[Abi.SLOTS_MAX];
    private long freeIndexes = -1L;
    private long lastSeq;
    private long stale;
    private String reason = "";

    /** A validator for a new client. */
    public RecordValidator() {
    }

    /**
     * The client may use a task from now on.
     *
     * @param taskId positive
     */
    public void openTask(final int taskId) {
        if (taskId <= 0 || freeIndexes == 0) {
            throw new IllegalArgumentException("task id " + taskId + " cannot be opened; "
                + (taskId <= 0 ? "it must be positive" : "the client has " + Abi.SLOTS_MAX + " open tasks"));
        }
        final int previous = indexByTask.get(taskId);
        if (previous >= 0) {
            throw new IllegalArgumentException("task id " + taskId + " is open already; close it first");
        }
        final int index = Long.numberOfTrailingZeros(freeIndexes);
        freeIndexes &= ~(1L << index);
        lastTicket[index] = 0;
        open[index] = false;
        indexByTask.put(taskId, index);
    }

    /**
     * The client may no longer use a task. Its records that are still in the queue are skipped.
     *
     * @param taskId the task
     */
    public void closeTask(final int taskId) {
        final int index = indexByTask.get(taskId);
        if (index >= 0) {
            freeIndexes |= 1L << index;
            indexByTask.put(taskId, CLOSED);
        }
    }

    /**
     * Checks one record and, if it is valid, remembers it.
     *
     * @param view  the copy
     * @param nowNs CLOCK_MONOTONIC ns
     * @return {@link #VALID}, {@link #STALE} or {@code Abi.POISON_*}; the reason is in {@link #reason}
     */
    @Override
    public int check(final RecordView view, final long nowNs) {
        final UnsafeBuffer copy = view.copy();
        final int kind = view.kind();
        if (kind < Abi.RECORD_BEGIN || kind > Abi.RECORD_JOB_END) {
            return refuse(Abi.POISON_KIND, "unknown record kind", view);
        }
        final int flagsAllowed = kind == Abi.RECORD_BEGIN ? Abi.FLAG_OPTIMISTIC
            : kind == Abi.RECORD_END ? Abi.FLAGS_KNOWN : kind == Abi.RECORD_JOB_END ? Abi.FLAG_CANCELLED : 0;
        if ((view.flags() & ~flagsAllowed) != 0) {
            return refuse(Abi.POISON_KIND, "flag not allowed for this kind", view);
        }
        if (copy.getInt(Abi.Record.RESERVED0_OFFSET) != 0 || kind != Abi.RECORD_RELEASE && view.sample() != 0) {
            return refuse(Abi.POISON_KIND, "reserved field is not 0", view);
        }
        if (view.seq() != lastSeq + 1) {
            return refuse(Abi.POISON_SEQUENCE, "seq is not the previous one + 1", view);
        }
        final int times = checkTimes(view, kind, nowNs);
        if (times != VALID) {
            return times;
        }
        final int index = indexByTask.get(view.taskId());
        if (index == CLOSED) {
            lastSeq++;
            stale++;
            return STALE;
        }
        if (index == MISSING) {
            return refuse(Abi.POISON_TASK, "task does not belong to this client", view);
        }
        final int ticket = checkTicket(view, kind, index);
        if (ticket == VALID) {
            lastSeq++;
        }
        return ticket;
    }

    private int checkTimes(final RecordView view, final int kind, final long nowNs) {
        final long timeNs = view.timeNs();
        final long releaseNs = view.releaseNs();
        final long argNs = view.argNs();
        if (timeNs < 0 || timeNs - nowNs > FUTURE_LIMIT_NS) {
            return refuse(Abi.POISON_TIME, "time is negative or more than 10 s ahead", view);
        }
        if (releaseNs < 0 || releaseNs - nowNs > FUTURE_LIMIT_NS || kind == Abi.RECORD_RELEASE && releaseNs == 0) {
            return refuse(Abi.POISON_TIME, "release is negative, missing or more than 10 s ahead", view);
        }
        // a deadline or a hint may lie further ahead than 10 s; sums with relative times must not overflow
        if (argNs < 0 || argNs > DEADLINE_LIMIT_NS) {
            return refuse(Abi.POISON_TIME, "argument is negative or overflows", view);
        }
        return VALID;
    }

    private int checkTicket(final RecordView view, final int kind, final int index) {
        final long ticket = view.ticket();
        switch (kind) {
            case Abi.RECORD_BEGIN:
                if (ticket <= lastTicket[index] || ticket >= TICKET_LIMIT) {
                    return refuse(Abi.POISON_TICKET, "begin of an old or impossible ticket", view);
                }
                lastTicket[index] = ticket;
                open[index] = true;
                return VALID;
            case Abi.RECORD_END:
                if (ticket != lastTicket[index] || !open[index]) {
                    return refuse(Abi.POISON_TICKET, "end of a ticket that is not begun", view);
                }
                open[index] = false;
                return VALID;
            default:
                return ticket == 0 ? VALID : refuse(Abi.POISON_TICKET, "ticket must be 0 for this kind", view);
        }
    }

    private int refuse(final int code, final String why, final RecordView view) {
        reason = why + ": " + view;
        return code;
    }

    /** Why the last record was refused; one line with all values of the record. */
    @Override
    public String reason() {
        return reason;
    }

    /** The last accepted sequence number; 0 = none yet. */
    public long lastSeq() {
        return lastSeq;
    }

    /** Records skipped because their task was closed before they were read; count. */
    public long stale() {
        return stale;
    }
}
