/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.HashMap;
import java.util.Map;

/**
 * How fast the records of one user are taken, over all of his processes: limit {@code records} of limits.d. A thread
 * with a real-time priority that is busy without a pause is stopped by the kernel for 50 ms of each second
 * (sched_rt_runtime_us), and with it everybody's grants. So a user who writes without a pause waits: his records stay
 * in his queues, in their order, and nobody else is delayed.
 *
 * <p>What is taken until a time is at most the rate times that time, and {@value #BURST_NS} ns of it in addition. So is
 * the dispatcher's time: {@value #PERCENT} % of it. A record takes several times as long while its code is not yet
 * compiled; then fewer are taken. Time is measured for a user who has records in one poll after the other.
 * Dispatcher thread only; taking records allocates nothing.
 */
final class RecordRate {
    /** A user who has written nothing for so long may write as much at once. */
    static final long BURST_NS = 100_000_000;
    /** A user who has to wait does so until that many of his records may be taken: each look costs something. */
    static final int AT_LEAST = 256;
    /** Of the dispatcher's time, for all records of one user. */
    static final int PERCENT = 40;
    /** What keeps a poll longer than this is the machine, not its records. */
    static final long LONGEST_POLL_NS = 1_000_000;
    private static final int WHOLE = 100;
    private static final long NS_PER_S = 1_000_000_000;

    private final long nsPerRecord;
    /** When all that was taken would have been taken at the rate. */
    private long paidNs;
    private boolean waits;
    private boolean busy;

    private RecordRate(final long perSecond, final long nowNs) {
        nsPerRecord = Math.max(1, NS_PER_S / Math.max(1, perSecond));
        paidNs = nowNs - BURST_NS;
    }

    /** The rates of users, by number. */
    static final class Users {
        private final Map<Integer, RecordRate> rates = new HashMap<>();

        /**
         * The rate of a user who registers a process.
         *
         * @param uid       the user
         * @param perSecond records a second, {@link Long#MAX_VALUE} = as many as he writes
         * @param nowNs     CLOCK_MONOTONIC
         * @return null if there is no limit
         */
        RecordRate of(final int uid, final long perSecond, final long nowNs) {
            return perSecond == Long.MAX_VALUE ? null
                : rates.computeIfAbsent(uid, u -> new RecordRate(perSecond, nowNs));
        }
    }

    /**
     * How many records may be taken now.
     *
     * @param most  as many are wanted, from 1
     * @param nowNs CLOCK_MONOTONIC
     * @return 0 to most; 0 until {@link #readyNs}
     */
    int allowed(final int most, final long nowNs) {
        if (waits && nowNs - readyNs() < 0) {
            return 0;
        }
        paidNs = nowNs - paidNs > BURST_NS ? nowNs - BURST_NS : paidNs;
        final long allowed = (nowNs - paidNs) / nsPerRecord;
        busy |= waits;   // whoever had to wait has written more than he may
        waits = allowed <= 0;
        return waits ? 0 : (int) Math.min(most, allowed);
    }

    /** Whether the last poll found records, or the user had to wait: the time of the next poll is to be measured. */
    boolean isBusy() {
        return busy;
    }

    /**
     * So many were taken by one poll.
     *
     * @param records from 0
     * @param tookNs  how long that took, 0 = not measured
     */
    void took(final int records, final long tookNs) {
        busy = records > 0;
        paidNs += Math.max(records * nsPerRecord, Math.min(tookNs, LONGEST_POLL_NS) * WHOLE / PERCENT);
    }

    /** When {@link #allowed} is to be asked again after it said 0, CLOCK_MONOTONIC ns. */
    long readyNs() {
        return paidNs + AT_LEAST * nsPerRecord;
    }
}
