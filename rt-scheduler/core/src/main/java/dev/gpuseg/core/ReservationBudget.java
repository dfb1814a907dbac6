/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * For how long one GPU may be reserved for expected begins: a share of the time that best-effort work would have
 * without. What real-time segments and changes between them and best-effort work take is none of it.
 *
 * <h2>By rank</h2>
 * Each task has savings of its own, up to a limit, and pays with them alone. What is earned goes to the first task in
 * order of rank until its savings are full, then to the next, and what is left when all are full is lost. Hence:
 * <ul>
 * <li>what a task may spend does not depend on what tasks after it spend or expect;
 * <li>all together spend at most what was earned, and each at most one payment more than it had;
 * <li>a task that pauses keeps its savings, and what it does not need goes to the next.
 * </ul>
 * A task that spent all it had is over budget until half of its savings are there again: a begin served now and then is
 * of no use to it.
 *
 * <h2>Claims</h2>
 * So that a lower task is not served now and then either, each task claims what it expects to use ({@link #claim}), and
 * {@link #leftPpm} says what the claims before a task leave. A claim is a mean of many begins, and is kept for a while
 * after the last one: for the tasks after it nothing changes from one second to the next, nor by a pause.
 *
 * <p>Times are ns and do not decrease. Not thread-safe; allocates nothing after construction.
 */
final class ReservationBudget {
    /** The budget of this time can be saved by each task and used at once. */
    private static final long SAVED_NS = 200_000_000;
    /** What was so long ago counts half for {@link #ratePpm}. */
    private static final long WINDOW_NS = 1_000_000_000;
    /** A claim without a begin is kept for so long, and two periods. */
    private static final long CLAIM_NS = 2_000_000_000;
    /** A claim is the mean of about so many. */
    private static final int CLAIMS = 64;

    private long ppm;
    private long atNs;
    private boolean lent = true;
    private long lentFromNs;
    private long allNs;
    private long lentNs;
    /** Earned and not given to a task yet; negative: debts of tasks that left. */
    private long earnedNs;

    /** The tasks, in the order in which they are given to. */
    private final int[] order;
    private int count;
    // by task
    private final boolean[] isMember;
    private final int[] rank;
    private final long[] savedNs;
    private final boolean[] isSpent;
    private final int[] claims;
    private final long[] claimPpm;
    private final long[] claimedUntilNs;

    /** Without tasks, which have numbers up to a largest one. */
    ReservationBudget(final long ppm, final int maxTask) {
        this.ppm = ppm;
        final int size = maxTask + 1;
        order = new int[size];
        isMember = new boolean[size];
        rank = new int[size];
        savedNs = new long[size];
        isSpent = new boolean[size];
        claims = new int[size];
        claimPpm = new long[size];
        claimedUntilNs = new long[size];
    }

    /** Another share, in ppm; what was saved is lost. */
    void setPpm(final long newPpm) {
        ppm = newPpm;
        earnedNs = 0;
        for (int i = 0; i < count; i++) {
            savedNs[order[i]] = 0;
            isSpent[order[i]] = false;
        }
    }

    // ---- tasks -----------------------------------------------------------------------------------------------------

    /** A task may have begins that are expected. It is not one of these yet, and has saved nothing. */
    void add(final int task, final int itsRank) {
        savedNs[task] = 0;
        isSpent[task] = false;
        claims[task] = 0;
        claimPpm[task] = 0;
        rank[task] = itsRank;
        pour();
        insert(task);
    }

    private void insert(final int task) {
        int i = count++;
        while (i > 0 && isBefore(task, order[i - 1])) {
            order[i] = order[i - 1];
            i--;
        }
        order[i] = task;
        isMember[task] = true;
    }

    private boolean isBefore(final int task, final int other) {
        return rank[task] != rank[other] ? Priority.isHigherThan(rank[task], rank[other]) : task < other;
    }

    /** It has none any more. What it saved, or owes, is left to the others. */
    void remove(final int task) {
        pour();
        take(task);
        isMember[task] = false;
        earnedNs += savedNs[task];
    }

    private void take(final int task) {
        int i = 0;
        while (order[i] != task) {
            i++;
        }
        count--;
        System.arraycopy(order, i + 1, order, i, count - i);
    }

    /** Its rank changed; it keeps what it has. */
    void setRank(final int task, final int itsRank) {
        pour();
        take(task);
        rank[task] = itsRank;
        insert(task);
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    /** Whether best-effort work has the GPU, or would have if it was not reserved. */
    boolean isLent() {
        return lent;
    }

    /** Another turn of {@link #isLent}: from a time on that may lie ahead, while contexts are enabled. */
    void lend(final boolean isLent, final long fromNs, final long nowNs) {
        advance(nowNs);
        lent = isLent;
        lentFromNs = fromNs;
    }

    private void advance(final long nowNs) {
        final long sinceNs = Math.min(WINDOW_NS, nowNs - atNs);
        if (sinceNs <= 0) {
            return;
        }
        final long toBestEffortNs = lent ? Math.max(0, Math.min(sinceNs, nowNs - lentFromNs)) : 0;
        atNs = nowNs;
        earnedNs += share(Math.min(SAVED_NS, toBestEffortNs));
        allNs += sinceNs;
        lentNs += toBestEffortNs;
        if (allNs > WINDOW_NS) {
            allNs /= 2;
            lentNs /= 2;
        }
    }

    private long share(final long ns) {
        return ns * ppm / Anticipator.PPM;
    }

    /** Gives what was earned to the tasks. As nobody spends in between, it does not matter when. */
    private void pour() {
        final long fullNs = share(SAVED_NS);
        for (int i = 0; i < count && earnedNs > 0; i++) {
            final int task = order[i];
            final long givenNs = Math.min(earnedNs, fullNs - savedNs[task]);
            savedNs[task] += givenNs;
            earnedNs -= givenNs;
            isSpent[task] &= savedNs[task] < fullNs / 2;
        }
        earnedNs = Math.min(0, earnedNs);
    }

    // ---- what a task may use ---------------------------------------------------------------------------------------

    /** Whether the GPU may be reserved for a task. */
    boolean isLeft(final int task, final long nowNs) {
        advance(nowNs);
        pour();
        return savedNs[task] > 0 && !isSpent[task];
    }

    /** It was reserved for a task for so long, whether that was saved or not; after its removal others pay. */
    void spend(final int task, final long ns, final long nowNs) {
        advance(nowNs);
        pour();
        if (!isMember[task]) {
            earnedNs -= ns;
            return;
        }
        savedNs[task] -= ns;
        isSpent[task] |= savedNs[task] <= 0;
    }

    /** What all together may use for long: ppm of all of the time, as it was divided lately. */
    long ratePpm() {
        return allNs == 0 ? ppm : ppm * lentNs / allNs;
    }

    /** What the tasks before a task leave of that; negative if they claim more. */
    long leftPpm(final int task, final long nowNs) {
        long left = ratePpm();
        for (int i = 0; i < count && order[i] != task; i++) {
            left -= nowNs < claimedUntilNs[order[i]] ? claimPpm[order[i]] : 0;
        }
        return left;
    }

    /**
     * A task plans a begin.
     *
     * @param needPpm  of all of the time that it expects to use; 0 if the begin is not served
     * @param periodNs of the begins
     */
    void claim(final int task, final long needPpm, final long periodNs, final long nowNs) {
        claims[task] = Math.min(CLAIMS, claims[task] + 1);
        claimPpm[task] += (needPpm - claimPpm[task]) / claims[task];
        claimedUntilNs[task] = nowNs + CLAIM_NS + 2 * periodNs;
    }
}
