/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Weights and caps of groups of best-effort contexts, and whose turn it is on each GPU.
 *
 * <p>A group competes on a GPU while one of its contexts there has a begun segment, or is unmanaged. While all
 * competing contexts have equal claims and none is capped, all are on together and nothing is counted. Else one group
 * has the turn: the one of least virtual time (time on the GPU divided by weight), ties to the lower number. It keeps
 * it for a quantum, until it stops competing, has used up its cap, or a group of less virtual time returns.
 *
 * <p>A group that returns keeps what it is behind or ahead of the others, up to what one quantum of the lightest of
 * them makes; it cannot save up time by staying away. What it used beyond its cap (timers are late) is subtracted
 * from the next period.
 */
final class FairShares {
    /** No group has the turn. */
    static final int NOBODY = -1;
    /** All groups have it. */
    static final int ALL = -2;
    static final int WEIGHT_DEFAULT = 100;
    static final int WEIGHT_MAX = 10_000;
    static final long QUANTUM_DEFAULT_NS = 10_000_000;
    static final long PERIOD_MIN_NS = 1_000_000;
    static final long PERIOD_MAX_NS = 10_000_000_000L;

    private final int rows;
    private final int[] weight;
    private final long[] quotaNs;
    private final long[] periodNs;
    private long quantumNs = QUANTUM_DEFAULT_NS;
    private Sharing sharing = Sharing.TURNS;
    /** Groups whose weight or cap is not the usual one, and contexts in a group that is not their own. */
    private int unusual;

    // By gpu * rows + group.
    /** Virtual time while competing, what it is ahead of the others while not. Compared by difference: it may wrap. */
    private final long[] virtual;
    private final long[] usedNs;
    private final long[] periodStartNs;
    private final long[] competedIn;
    private final int[] members;

    private final int[][] competing;
    private final int[][] competedBefore;
    private final int[] count;
    private final int[] countBefore;
    private final long[] round;
    private final long[] base;
    private final int[] turn;
    private final long[] turnLeftNs;
    private final long[] chargedNs;
    private final boolean[] counting;
    /** The group that has the turn is wanted on since then; the group that had it before is wanted off. */
    private final boolean[] started;
    private final long[] startedNs;
    private final boolean[] awaitsOn;
    private final int[] outgoing;
    private final long[] stoppedNs;
    private final long[] nextNs;

    FairShares(final int groups, final int gpus) {
        rows = groups;
        weight = new int[rows];
        quotaNs = new long[rows];
        periodNs = new long[rows];
        Arrays.fill(weight, WEIGHT_DEFAULT);
        virtual = new long[gpus * rows];
        usedNs = new long[gpus * rows];
        periodStartNs = new long[gpus * rows];
        competedIn = new long[gpus * rows];
        members = new int[gpus * rows];
        competing = new int[gpus][rows];
        competedBefore = new int[gpus][rows];
        count = new int[gpus];
        countBefore = new int[gpus];
        round = new long[gpus];
        base = new long[gpus];
        turn = new int[gpus];
        Arrays.fill(turn, ALL);
        turnLeftNs = new long[gpus];
        chargedNs = new long[gpus];
        counting = new boolean[gpus];
        started = new boolean[gpus];
        startedNs = new long[gpus];
        awaitsOn = new boolean[gpus];
        outgoing = new int[gpus];
        Arrays.fill(outgoing, NOBODY);
        stoppedNs = new long[gpus];
        nextNs = new long[gpus];
        Arrays.fill(nextNs, Time.NEVER);
    }

    // ---- settings --------------------------------------------------------------------------------------------------

    boolean isInUse() {
        return unusual > 0;
    }

    void joined(final boolean ownGroup) {
        unusual += ownGroup ? 0 : 1;
    }

    void left(final boolean ownGroup) {
        unusual -= ownGroup ? 0 : 1;
    }

    int weight(final int g) {
        return weight[g];
    }

    long quotaNs(final int g) {
        return quotaNs[g];
    }

    long periodNs(final int g) {
        return periodNs[g];
    }

    void setWeight(final int g, final int newWeight) {
        unusual -= isUnusual(g);
        weight[g] = newWeight;
        unusual += isUnusual(g);
    }

    void setCap(final int g, final long newQuotaNs, final long newPeriodNs, final long nowNs) {
        unusual -= isUnusual(g);
        quotaNs[g] = newQuotaNs;
        periodNs[g] = newPeriodNs;
        unusual += isUnusual(g);
        for (int at = g; at < usedNs.length; at += rows) {
            usedNs[at] = 0;
            periodStartNs[at] = nowNs;
        }
    }

    /** As new: usual weight, no cap, no history. */
    void reset(final int g) {
        setWeight(g, WEIGHT_DEFAULT);
        setCap(g, 0, 0, 0);
        for (int at = g; at < virtual.length; at += rows) {
            if (competedIn[at] == 0) {
                virtual[at] = 0;
            }
        }
    }

    private int isUnusual(final int g) {
        return weight[g] != WEIGHT_DEFAULT || quotaNs[g] > 0 ? 1 : 0;
    }

    void quantumNs(final long ns) {
        quantumNs = ns;
    }

    void sharing(final Sharing how) {
        sharing = how;
    }

    Sharing sharing() {
        return sharing;
    }

    // ---- one decision ----------------------------------------------------------------------------------------------

    /** Counts the time since the last decision for the group that had the turn. */
    void charge(final int gpu, final long nowNs) {
        if (counting[gpu] && turn[gpu] >= 0) {
            final int g = turn[gpu];
            final long ranNs = nowNs - chargedNs[gpu];
            count(gpu, g, ranNs);
        }
        chargedNs[gpu] = nowNs;
        counting[gpu] = false;
    }

    private long scaled(final int g, final long ns) {
        return ns * WEIGHT_MAX / weight[g];
    }

    /** Best effort does not have the GPU: the turn stands still. */
    void pause(final int gpu, final long nowNs) {
        nextNs[gpu] = Time.NEVER;
        stop(gpu, turn[gpu], nowNs);
    }

    private void stop(final int gpu, final int g, final long nowNs) {
        if (started[gpu] && g >= 0) {
            outgoing[gpu] = g;
            stoppedNs[gpu] = nowNs;
        }
        started[gpu] = false;
        awaitsOn[gpu] = false;
    }

    private void start(final int gpu, final int before, final long nowNs) {
        if (started[gpu] && before == turn[gpu]) {
            return;
        }
        stop(gpu, before, nowNs);
        started[gpu] = true;
        startedNs[gpu] = nowNs;
        awaitsOn[gpu] = turn[gpu] >= 0 && before != ALL;
    }

    /**
     * A context of the group came on or went off the hardware: the time between decision and effect is counted for
     * the group that had it. Returns whether that changed what is due.
     */
    boolean applied(final int gpu, final int g, final boolean on, final long atNs) {
        if (on && awaitsOn[gpu] && g == turn[gpu]) {
            awaitsOn[gpu] = false;
            count(gpu, g, Math.min(0, startedNs[gpu] - atNs));
            return true;
        }
        if (!on && g == outgoing[gpu]) {
            outgoing[gpu] = NOBODY;
            count(gpu, g, Math.max(0, atNs - stoppedNs[gpu]));
        }
        return false;
    }

    private void count(final int gpu, final int g, final long ranNs) {
        virtual[gpu * rows + g] += scaled(g, ranNs);
        turnLeftNs[gpu] -= g == turn[gpu] ? ranNs : 0;
        if (quotaNs[g] > 0) {
            usedNs[gpu * rows + g] = Math.max(0, usedNs[gpu * rows + g] + ranNs);
        }
    }

    /** Shares are no longer in use: all groups have the turn, and nothing is remembered. */
    void leaveOff(final int gpu) {
        turn[gpu] = ALL;
        counting[gpu] = false;
        started[gpu] = false;
        awaitsOn[gpu] = false;
        outgoing[gpu] = NOBODY;
        nextNs[gpu] = Time.NEVER;
        for (int i = 0; i < count[gpu]; i++) {
            final int at = gpu * rows + competing[gpu][i];
            competedIn[at] = 0;
            virtual[at] = 0;
        }
        count[gpu] = 0;
    }

    void startRound(final int gpu) {
        round[gpu]++;
        final int[] spare = competedBefore[gpu];
        competedBefore[gpu] = competing[gpu];
        competing[gpu] = spare;
        countBefore[gpu] = count[gpu];
        count[gpu] = 0;
    }

    /** One context of the group has, or may have, work on the GPU. */
    void compete(final int gpu, final int g) {
        final int at = gpu * rows + g;
        if (competedIn[at] != round[gpu]) {
            members[at] = 0;
            competing[gpu][count[gpu]++] = g;
            // told apart from a group that was there in the last round by the sign
            competedIn[at] = competedIn[at] == round[gpu] - 1 && competedIn[at] > 0 ? round[gpu] : -round[gpu];
        }
        members[at]++;
    }

    /** Decides whose turn it is. */
    void endRound(final int gpu, final long nowNs) {
        final int first = gpu * rows;
        findBase(gpu);
        forgetThoseWhoLeft(gpu);
        boolean cameBack = false;
        for (int i = 0; i < count[gpu]; i++) {
            final int g = competing[gpu][i];
            if (competedIn[first + g] < 0) {
                competedIn[first + g] = round[gpu];
                virtual[first + g] += base[gpu];
                cameBack = true;
            }
        }
        counting[gpu] = true;
        nextNs[gpu] = Time.NEVER;
        final int now = turn[gpu];
        if (!takesTurns(gpu)) {
            turn[gpu] = ALL;
            start(gpu, now, nowNs);
            return;
        }
        final boolean keeps = now >= 0 && competedIn[first + now] == round[gpu] && !isThrottled(gpu, now, nowNs)
            && turnLeftNs[gpu] > 0;
        final int best = least(gpu, nowNs);
        if (!keeps || cameBack && virtual[first + best] - virtual[first + now] < 0) {
            turn[gpu] = best;
            turnLeftNs[gpu] = quantumNs;
        }
        start(gpu, now, nowNs);
        nextNs[gpu] = whenToLook(gpu, nowNs);
    }

    /** The least virtual time of those that went on competing; the old one if there is none. */
    private void findBase(final int gpu) {
        final int first = gpu * rows;
        boolean found = false;
        for (int i = 0; i < count[gpu]; i++) {
            final int at = first + competing[gpu][i];
            if (competedIn[at] > 0 && (!found || virtual[at] - base[gpu] < 0)) {
                base[gpu] = virtual[at];
                found = true;
            }
        }
        for (int i = 0; !found && i < countBefore[gpu]; i++) {
            final int at = first + competedBefore[gpu][i];
            base[gpu] = i == 0 || virtual[at] - base[gpu] < 0 ? virtual[at] : base[gpu];
        }
    }

    /** The most that two groups are apart in virtual time by turns alone. */
    private long quantumOfTheLightest(final int gpu) {
        int lightest = WEIGHT_MAX;
        for (int i = 0; i < countBefore[gpu]; i++) {
            lightest = Math.min(lightest, weight[competedBefore[gpu][i]]);
        }
        return quantumNs * WEIGHT_MAX / lightest;
    }

    private void forgetThoseWhoLeft(final int gpu) {
        final long most = quantumOfTheLightest(gpu);
        for (int i = 0; i < countBefore[gpu]; i++) {
            final int g = competedBefore[gpu][i];
            final int at = gpu * rows + g;
            if (competedIn[at] == round[gpu] - 1) {
                virtual[at] = Math.max(-most, Math.min(most, virtual[at] - base[gpu]));
                competedIn[at] = 0;
            }
        }
    }

    private boolean takesTurns(final int gpu) {
        final int first = gpu * rows;
        final int n = count[gpu];
        for (int i = 0; i < n; i++) {
            final int g = competing[gpu][i];
            if (quotaNs[g] > 0) {
                return true;
            }
            final int h = competing[gpu][0];
            if (sharing == Sharing.TURNS
                && (long) weight[g] * members[first + h] != (long) weight[h] * members[first + g]) {
                return true;
            }
        }
        return false;
    }

    private boolean isThrottled(final int gpu, final int g, final long nowNs) {
        if (quotaNs[g] == 0) {
            return false;
        }
        final int at = gpu * rows + g;
        final long periods = (nowNs - periodStartNs[at]) / periodNs[g];
        if (periods > 0) {
            periodStartNs[at] += periods * periodNs[g];
            // division first: the number of periods may be large
            usedNs[at] = usedNs[at] / quotaNs[g] < periods ? 0 : usedNs[at] - periods * quotaNs[g];
        }
        return usedNs[at] >= quotaNs[g];
    }

    private int least(final int gpu, final long nowNs) {
        int best = NOBODY;
        for (int i = 0; i < count[gpu]; i++) {
            final int g = competing[gpu][i];
            if (isThrottled(gpu, g, nowNs)) {
                continue;
            }
            final long behind = best == NOBODY ? -1 : virtual[gpu * rows + g] - virtual[gpu * rows + best];
            if (behind < 0 || behind == 0 && g < best) {
                best = g;
            }
        }
        return best;
    }

    private long whenToLook(final int gpu, final long nowNs) {
        final int now = turn[gpu];
        long at = Time.NEVER;
        boolean others = false;
        for (int i = 0; i < count[gpu]; i++) {
            final int g = competing[gpu][i];
            if (isThrottled(gpu, g, nowNs)) {
                at = Math.min(at, periodStartNs[gpu * rows + g] + periodNs[g]);
            } else {
                others |= g != now;
            }
        }
        if (now >= 0 && others) {
            at = Math.min(at, nowNs + turnLeftNs[gpu]);
        }
        if (now >= 0 && quotaNs[now] > 0) {
            final int row = gpu * rows + now;
            at = Math.min(at, Math.min(nowNs + quotaNs[now] - usedNs[row], periodStartNs[row] + periodNs[now]));
        }
        return at;
    }

    /** Whether the contexts of a group may use the GPU now; asked of competing groups and of idle ones. */
    boolean isOn(final int gpu, final int g, final long nowNs) {
        if (turn[gpu] == ALL || turn[gpu] == g) {
            return true;
        }
        return competedIn[gpu * rows + g] != round[gpu] && !isThrottled(gpu, g, nowNs);
    }

    long nextNs(final int gpu) {
        return nextNs[gpu];
    }

    int turn(final int gpu) {
        return turn[gpu];
    }
}
