/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * How much of each GPU the real-time segments of an account may use: a credit for each account and GPU. It begins with
 * the share of {@link #PERIOD_NS}, grows by the share of the time in which the account has no GPU, up to that, and
 * shrinks by the rest while a real-time segment of the account has the GPU. When it is used up, the account is spent
 * until the credit is whole again, which takes one period
 * ({@code rt-scheduler/docs/adr/0041-limits-at-run-time.md} has the proofs). Allocates nothing.
 *
 * <p>An account whose segments all wait for a late daemon is excused: after {@link #PROMPT_NS} the wait is not charged,
 * as far as its allowance goes ({@code rt-scheduler/docs/adr/0051-late-grants.md}).
 */
final class RealTimeShares {
    /** No limit. */
    static final int WHOLE = 100;
    /** A spent account is whole again after this time, ns. */
    static final long PERIOD_NS = 1_000_000_000;
    /** As long as it may take to give a segment the GPU; this much of each wait is charged, ns. */
    static final long PROMPT_NS = 2_000_000;
    /** The most that an account is excused for in a short time, ns; in the long run it is 1 / {@link #REFILL}. */
    static final long ALLOWANCE_NS = 100_000_000;
    private static final long REFILL = 100;

    private final int gpus;
    private final int[] percent;
    /** Hundredths of a ns. */
    private final long[] credit;
    private final long[] sinceNs;
    private final boolean[] spent;
    private final boolean[] inUse;
    /** The decision that last found the account using the GPU. */
    private final long[] seen;
    /** From then on the use is excused; {@link Time#NEVER} if the account has what it uses. */
    private final long[] excusedNs;
    /** The question that {@link #excusedNs} answers. */
    private final long[] excusedBy;
    /** What may still be excused, in ns / {@link #REFILL}. */
    private final long[] allowance;
    /** For each GPU, the accounts that use it. */
    private final int[][] users;
    private final int[] userCount;
    private int limited;

    /**
     * @param accounts highest account; 0 is none
     * @param gpus     number of GPUs
     */
    RealTimeShares(final int accounts, final int gpus) {
        this.gpus = gpus;
        final int rows = (accounts + 1) * gpus;
        percent = new int[accounts + 1];
        Arrays.fill(percent, WHOLE);
        credit = new long[rows];
        sinceNs = new long[rows];
        spent = new boolean[rows];
        inUse = new boolean[rows];
        seen = new long[rows];
        excusedNs = new long[rows];
        Arrays.fill(excusedNs, Time.NEVER);
        excusedBy = new long[rows];
        allowance = new long[rows];
        Arrays.fill(allowance, REFILL * ALLOWANCE_NS);
        users = new int[gpus][accounts + 1];
        userCount = new int[gpus];
    }

    /** Whether any account has a limit. */
    boolean isLimited() {
        return limited > 0;
    }

    int percent(final int account) {
        return percent[account];
    }

    boolean isSpent(final int account, final int gpu) {
        return spent[row(account, gpu)];
    }

    /** Rows are numbered so that each can have a timer. */
    int row(final int account, final int gpu) {
        return account * gpus + gpu;
    }

    int account(final int row) {
        return row / gpus;
    }

    int gpu(final int row) {
        return row % gpus;
    }

    /** A new limit; an account that had none begins with a whole credit. {@link #turn} of each GPU is to follow. */
    void limit(final int account, final int newPercent, final long nowNs) {
        final int before = percent[account];
        for (int gpu = 0; gpu < gpus; gpu++) {
            charge(row(account, gpu), nowNs);
        }
        percent[account] = newPercent;
        limited += (newPercent < WHOLE ? 1 : 0) - (before < WHOLE ? 1 : 0);
        for (int row = row(account, 0); row < row(account + 1, 0); row++) {
            credit[row] = before == WHOLE ? whole(row) : Math.min(credit[row], whole(row));
            sinceNs[row] = nowNs;
        }
    }

    private long whole(final int row) {
        return percent[account(row)] * PERIOD_NS;
    }

    private void charge(final int row, final long nowNs) {
        final int share = percent[account(row)];
        final long fromNs = sinceNs[row];
        if (nowNs <= fromNs) {
            return;
        }
        final long passedNs = nowNs - fromNs;
        sinceNs[row] = nowNs;
        if (share == WHOLE) {
            return;
        }
        final long excused = inUse[row] && nowNs > excusedNs[row]
            ? Math.min(allowanceNs(row), nowNs - Math.max(fromNs, excusedNs[row])) : 0;
        allowance[row] = Math.min(REFILL * ALLOWANCE_NS,
            allowance[row] - REFILL * excused + Math.min(passedNs, REFILL * ALLOWANCE_NS));
        if (inUse[row]) {
            credit[row] -= (WHOLE - share) * (passedNs - excused);
        } else {
            // beyond this it is whole in any case, and the product could overflow
            final long missingNs = share == 0 ? 0 : Math.floorDiv(whole(row) - credit[row], share) + 1;
            credit[row] = Math.min(whole(row), credit[row] + share * Math.min(passedNs, missingNs));
        }
    }

    private long allowanceNs(final int row) {
        return allowance[row] / REFILL;
    }

    // ---- one decision of a GPU -------------------------------------------------------------------------------------

    /** A real-time segment of this account has the GPU, or keeps others off it, by this decision. */
    void use(final int account, final int gpu, final long decision, final long nowNs) {
        final int row = row(account, gpu);
        if (account == 0 || percent[account] == WHOLE || seen[row] == decision) {
            return;
        }
        seen[row] = decision;
        if (!inUse[row]) {
            charge(row, nowNs);
            inUse[row] = true;
            users[gpu][userCount[gpu]++] = account;
        }
    }

    /**
     * A GPU was reserved for a begin of which the account gave a hint: as if it had used it so long. The timer of
     * {@link #dueNs} is to be set.
     */
    void take(final int account, final int gpu, final long tookNs, final long nowNs) {
        final int row = row(account, gpu);
        charge(row, nowNs);
        credit[row] -= WHOLE * tookNs;
    }

    /** How many accounts use a GPU, or did before the decision being made. */
    int userCount(final int gpu) {
        return userCount[gpu];
    }

    /** Their rows. */
    int user(final int gpu, final int index) {
        return row(users[gpu][index], gpu);
    }

    /** After all calls of {@link #use}: ends the use of one that the decision did not name; true if it did end. */
    boolean settle(final int gpu, final int index, final long decision, final long nowNs) {
        final int row = user(gpu, index);
        if (seen[row] == decision) {
            return false;
        }
        charge(row, nowNs);
        inUse[row] = false;
        excusedNs[row] = Time.NEVER;
        users[gpu][index] = users[gpu][--userCount[gpu]];
        return true;
    }

    /**
     * What one of the segments has for which this account is charged. The account is excused if none of them has the
     * GPU; the one that came last says from when on.
     *
     * @param question    the same for all segments that are looked at together
     * @param waitSinceNs since when it has been waiting for what was decided; {@link Time#NEVER} if it has it
     */
    void excuse(final int account, final int gpu, final long question, final long waitSinceNs, final long nowNs) {
        final int row = row(account, gpu);
        if (account == 0 || !inUse[row]) {
            return;
        }
        charge(row, nowNs);
        final long fromNs = Time.addSaturating(waitSinceNs, PROMPT_NS);
        excusedNs[row] = excusedBy[row] == question ? Math.max(excusedNs[row], fromNs) : fromNs;
        excusedBy[row] = question;
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    /** When the account is spent, or no longer so; {@link Time#NEVER} if only a decision can change it. */
    long dueNs(final int row) {
        final int share = percent[account(row)];
        if (spent[row]) {
            return share == WHOLE ? sinceNs[row] : share == 0 ? Time.NEVER
                : Time.addSaturating(sinceNs[row], Math.max(0, (whole(row) - credit[row] + share - 1) / share));
        }
        if (share == WHOLE) {
            return Time.NEVER;
        }
        if (!inUse[row]) {
            return credit[row] < 0 ? sinceNs[row] : Time.NEVER;
        }
        final long usedUpNs = Time.addSaturating(sinceNs[row], Math.max(0, credit[row]) / (WHOLE - share) + 1);
        return usedUpNs > excusedNs[row] ? Time.addSaturating(usedUpNs, allowanceNs(row)) : usedUpNs;
    }

    /** What is due at {@link #dueNs} happens; returns whether the account is spent from now on. */
    boolean turn(final int row, final long nowNs) {
        charge(row, nowNs);
        final boolean limitedNow = percent[account(row)] < WHOLE;
        spent[row] = limitedNow && (spent[row] ? credit[row] < whole(row) : credit[row] < 0);
        return spent[row];
    }
}
