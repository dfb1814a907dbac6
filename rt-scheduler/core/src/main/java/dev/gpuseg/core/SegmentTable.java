/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** One row per task id: the task and its begun segment, if it has one. Columns, so that an event allocates nothing. */
final class SegmentTable {
    /** A segment's budgets leave out this much of the time in which it runs by decision only, ns. */
    static final long GRACE_NS = 100_000_000;

    final boolean[] open;
    final int[] contextId;
    final int[] gpuPriority;
    /** Whose share of real-time work it uses; 0 = none. */
    final int[] account;
    /** It has room of its own: its segments run from begin to end, beside all others. */
    final boolean[] reserved;
    /** That share is used up: what it begins is best effort. */
    final boolean[] spent;
    /** What the begun segment is compared by: the task's GPU priority, or 0 if it was demoted, spent or reserved. */
    final int[] rank;
    final long[] relativeDeadlineNs;
    final long[] budgetNs;
    /** Longest time from grant to end; 0 = unlimited. */
    final long[] windowNs;
    final OverrunAction[] overrun;
    final int[] partition;
    final boolean[] optimistic;
    /** The highest ticket begun so far; while a segment is begun, its ticket. */
    final long[] ticket;
    /** {@link SegmentState}. */
    final byte[] state;
    /** Granted at some time since it began. True while waiting only inside the begin of an optimistic segment. */
    final boolean[] granted;
    final long[] releaseNs;
    final long[] deadlineNs;
    final long[] beginNs;
    /** Budget left when it last came to run. */
    final long[] remainingNs;
    /** Since when its budget counts: when it last came to run, plus what was left out since. */
    final long[] runningSinceNs;
    /** Its grant is given; of no meaning unless {@link #countFromGrants}. */
    final boolean[] given;
    /** It runs by decision, but its grant is not given yet, or its context is still disabled. */
    final boolean[] awaits;
    /** What its budgets may still leave out. */
    final long[] graceNs;
    final boolean[] missReported;
    final boolean[] overrunReported;
    /** When the begun segment was granted; undefined before. */
    final long[] grantedNs;
    /** Its context is disabled until it ends. */
    final boolean[] suspended;
    final boolean[] demoted;
    /** The next begin is refused. */
    final boolean[] skipNext;
    /** Whether it is told when grants are given and contexts enabled. */
    private boolean countsFromGrants;

    SegmentTable(final int maxTasks) {
        final int rows = maxTasks + 1;
        open = new boolean[rows];
        contextId = new int[rows];
        gpuPriority = new int[rows];
        account = new int[rows];
        reserved = new boolean[rows];
        spent = new boolean[rows];
        rank = new int[rows];
        windowNs = new long[rows];
        overrun = new OverrunAction[rows];
        partition = new int[rows];
        relativeDeadlineNs = new long[rows];
        budgetNs = new long[rows];
        optimistic = new boolean[rows];
        ticket = new long[rows];
        state = new byte[rows];
        granted = new boolean[rows];
        releaseNs = new long[rows];
        deadlineNs = new long[rows];
        beginNs = new long[rows];
        remainingNs = new long[rows];
        runningSinceNs = new long[rows];
        missReported = new boolean[rows];
        overrunReported = new boolean[rows];
        grantedNs = new long[rows];
        suspended = new boolean[rows];
        demoted = new boolean[rows];
        skipNext = new boolean[rows];
        given = new boolean[rows];
        awaits = new boolean[rows];
        graceNs = new long[rows];
    }

    void countFromGrants() {
        countsFromGrants = true;
    }

    boolean countsFromGrants() {
        return countsFromGrants;
    }

    void openTask(final TaskParameters p) {
        final int t = p.taskId();
        open[t] = true;
        contextId[t] = p.contextId();
        gpuPriority[t] = p.gpuPriority();
        reserved[t] = p.reserved();
        account[t] = p.reserved() ? 0 : p.account();
        spent[t] = false;
        demoted[t] = false;
        rerank(t);
        windowNs[t] = p.windowNs();
        overrun[t] = p.overrun();
        partition[t] = p.partition();
        suspended[t] = false;
        skipNext[t] = false;
        relativeDeadlineNs[t] = p.relativeDeadlineNs();
        budgetNs[t] = p.budgetNs();
        optimistic[t] = p.optimistic();
        ticket[t] = 0;
        state[t] = SegmentState.IDLE;
        granted[t] = false;
    }

    void beginSegment(final int t, final long newTicket, final long release, final long deadline, final long begin,
        final boolean grantedAlready) {
        ticket[t] = newTicket;
        state[t] = SegmentState.WAITING;
        granted[t] = grantedAlready;
        beginNs[t] = begin;
        releaseNs[t] = release > 0 ? release : begin;
        deadlineNs[t] = deadline > 0 ? deadline
            : relativeDeadlineNs[t] > 0 ? Time.addSaturating(releaseNs[t], relativeDeadlineNs[t]) : Time.NEVER;
        promote(t);
        remainingNs[t] = budgetNs[t];
        missReported[t] = false;
        overrunReported[t] = false;
        given[t] = !countsFromGrants;
        awaits[t] = false;
        graceNs[t] = GRACE_NS;
    }

    void enterRunning(final int t, final long nowNs, final boolean contextIsOff) {
        if (state[t] == SegmentState.WAITING) {
            grantedNs[t] = nowNs;
        }
        state[t] = SegmentState.RUNNING;
        granted[t] = true;
        runningSinceNs[t] = nowNs;
        awaits[t] = !given[t] || contextIsOff;
    }

    void leaveRunning(final int t, final long nowNs) {
        if (awaits[t]) {
            startCount(t, nowNs);
        }
        pay(t, nowNs);
        state[t] = SegmentState.PREEMPTED;
    }

    private void pay(final int t, final long untilNs) {
        remainingNs[t] -= Math.max(0, untilNs - runningSinceNs[t]);
    }

    /** The grant of a begun segment is given. */
    void give(final int t, final long atNs) {
        if (!given[t] && state[t] == SegmentState.RUNNING) {
            grantedNs[t] = runningSinceNs[t] + leftOut(t, atNs);
        }
        given[t] = true;
    }

    /** A running segment has the GPU from this time on. */
    void startCount(final int t, final long atNs) {
        final long leftOutNs = leftOut(t, atNs);
        graceNs[t] -= leftOutNs;
        runningSinceNs[t] += leftOutNs;
        awaits[t] = false;
    }

    private long leftOut(final int t, final long untilNs) {
        return Math.min(graceNs[t], Math.max(0, untilNs - runningSinceNs[t]));
    }

    /** A running segment does not have the GPU from this time on: a disable that was under way is done. */
    void stopCount(final int t, final long atNs) {
        pay(t, atNs);
        runningSinceNs[t] = Math.max(runningSinceNs[t], atNs);
        awaits[t] = true;
    }

    void demote(final int t) {
        demoted[t] = true;
        rerank(t);
    }

    void promote(final int t) {
        demoted[t] = false;
        rerank(t);
    }

    /** After every change of what its rank follows from. */
    void rerank(final int t) {
        rank[t] = demoted[t] || spent[t] || reserved[t] ? Priority.BEST_EFFORT : gpuPriority[t];
    }

    void endSegment(final int t) {
        state[t] = SegmentState.IDLE;
        granted[t] = false;
        promote(t);
    }

    /** First instant at which a deadline has passed that was not reported; an end at the deadline itself is in time. */
    long missDueNs(final int t) {
        return missReported[t] ? Time.NEVER : Time.addSaturating(deadlineNs[t], 1);
    }

    /** First instant at which the segment has used more than one of its budgets, if that was not told yet. */
    long overrunDueNs(final int t) {
        return overrunReported[t] ? Time.NEVER : Math.min(heldDueNs(t), windowDueNs(t));
    }

    private long heldDueNs(final int t) {
        if (budgetNs[t] == 0 || state[t] != SegmentState.RUNNING) {
            return Time.NEVER;
        }
        return Time.addSaturating(Time.addSaturating(countSinceNs(t), remainingNs[t]), 1);
    }

    private long windowDueNs(final int t) {
        if (windowNs[t] == 0 || state[t] != SegmentState.RUNNING && state[t] != SegmentState.PREEMPTED) {
            return Time.NEVER;
        }
        if (!given[t]) {   // it begins with the grant
            return state[t] == SegmentState.PREEMPTED ? Time.NEVER
                : Time.addSaturating(Time.addSaturating(countSinceNs(t), windowNs[t]), 1);
        }
        return Time.addSaturating(Time.addSaturating(grantedNs[t], windowNs[t]), 1);
    }

    /** When the count of a running segment begins, at the latest. */
    private long countSinceNs(final int t) {
        final boolean mayWait = awaits[t] && (budgetNs[t] == 0 || remainingNs[t] >= 0);
        return mayWait ? Time.addSaturating(runningSinceNs[t], graceNs[t]) : runningSinceNs[t];
    }

    /** When something is to be reported of the segment, {@link Time#NEVER} if none is begun. */
    long dueNs(final int t) {
        return state[t] == SegmentState.IDLE ? Time.NEVER : Math.min(missDueNs(t), overrunDueNs(t));
    }

    /** The budget that is used up first, or was. */
    long dueBudgetNs(final int t) {
        return windowDueNs(t) < heldDueNs(t) ? windowNs[t] : budgetNs[t];
    }
}
