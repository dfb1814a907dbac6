/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Which best-effort contexts may run beside the jobs of one real-time task, so that its jobs do not become more than a
 * stated share longer. The slowdown is measured on the task itself: some of its jobs run alone, some beside one context
 * that is on trial, the others beside all contexts that passed.
 *
 * <h2>The budget</h2>
 * An account in ns. Each job that is observed pays in {@code percent} of the time that a job takes alone; each job that
 * ran beside something pays out what it took longer than that. While the account is below zero, nothing may run beside
 * a job. So at any time, whatever the jobs took,
 *
 * <pre>
 *   sum over co-run jobs (took - alone)  &lt;=  percent * sum over all jobs (alone)  +  the largest single excess
 * </pre>
 *
 * <p>The account holds at most {@value #CREDIT_JOBS} payments, so that a long time alone does not buy a long slow one.
 * {@code alone} is the median of the last {@value #ALONE_KEPT} jobs alone.
 *
 * <h2>Trials</h2>
 * A context that is new runs beside every fourth job, by itself. A job beside it that exceeds the budget is a strike:
 * after {@value #STRIKES} in a row it is held for {@value #HOLD_FIRST} jobs, then gets one more trial, and is held
 * twice as long each time that it fails. After {@value #PASSES} trials without a strike it has passed. If
 * {@value #GROUP_STRIKES} jobs in a row beside those that passed exceed the budget, all of these are on trial again.
 *
 * <p>Not thread-safe; reads no clock; allocates nothing after construction. A call costs at most as much as contexts
 * were asked for.
 */
public final class CoRunBudget {
    /** The smallest budget, per cent. */
    public static final int PERCENT_MIN = 1;
    /** The largest budget, per cent. */
    public static final int PERCENT_MAX = 100;

    static final int ALONE_FIRST = 8;
    static final int ALONE_KEPT = 15;
    static final int ROUND = 32;
    static final int ALONE_EACH_ROUND = 2;
    static final int TRIAL_EVERY = 4;
    static final int STRIKES = 2;
    static final int GROUP_STRIKES = 3;
    static final int PASSES = 4;
    static final int HOLD_FIRST = 64;
    static final int HOLD_LAST = 1 << 16;
    static final int CREDIT_JOBS = 50;
    /** A context that was not asked for during so many jobs gets no trial. */
    private static final int RECENT_JOBS = 64;
    private static final int NONE = -1;
    private static final long UNKNOWN = Long.MIN_VALUE / 2;

    private final int percent;
    private final long[] alone = new long[ALONE_KEPT];
    private final long[] sorted = new long[ALONE_KEPT];
    private int aloneCount;
    private int aloneAt;
    private long aloneNs;
    private long creditNs;
    private long job;
    private int groupStrikes;
    private boolean groupTurn;
    /** The context on trial beside the current job. */
    private int trial = NONE;
    private int lastTrial = NONE;

    /** The contexts that were ever asked for, in no order. */
    private final int[] known;
    private int knownCount;
    private final boolean[] isKnown;
    private final boolean[] passed;
    private final byte[] strikes;
    private final byte[] passes;
    private final int[] holdJobs;
    private final long[] heldUntilJob;
    private final long[] askedJob;
    private final boolean[] first;
    private long found;

    /**
     * A budget of which nothing is spent.
     *
     * @param percent     of the time alone, {@value #PERCENT_MIN}..{@value #PERCENT_MAX}
     * @param maxContexts highest context id
     * @throws IllegalArgumentException if the budget is out of range
     */
    public CoRunBudget(final int percent, final int maxContexts) {
        if (percent < PERCENT_MIN || percent > PERCENT_MAX) {
            throw new IllegalArgumentException("co-run budget is " + percent + "%; use " + PERCENT_MIN + ".."
                + PERCENT_MAX + "%");
        }
        this.percent = percent;
        final int size = maxContexts + 1;
        known = new int[size];
        isKnown = new boolean[size];
        passed = new boolean[size];
        strikes = new byte[size];
        passes = new byte[size];
        holdJobs = new int[size];
        heldUntilJob = new long[size];
        askedJob = new long[size];
        first = new boolean[size];
    }

    /** A job begins: decides what {@link #mayRunBeside} answers until the next one. */
    public void begin() {
        final long inRound = job % ROUND;
        trial = NONE;
        groupTurn = false;
        if (aloneCount < ALONE_FIRST || inRound < ALONE_EACH_ROUND || creditNs < 0) {
            return;
        }
        if (inRound % TRIAL_EVERY == TRIAL_EVERY - 1) {
            trial = nextTrial();
        }
        groupTurn = trial == NONE;
    }

    /**
     * The next context on trial after the last one, by id, of those that go first if there are any; {@link #NONE} if
     * there is none.
     */
    private int nextTrial() {
        final int next = nextTrial(true);
        lastTrial = next == NONE ? nextTrial(false) : next;
        return lastTrial;
    }

    private int nextTrial(final boolean ofFirst) {
        int lowest = NONE;
        int next = NONE;
        for (int i = 0; i < knownCount; i++) {
            final int c = known[i];
            if (first[c] == ofFirst && !passed[c] && heldUntilJob[c] <= job && askedJob[c] > job - RECENT_JOBS) {
                lowest = lowest == NONE ? c : Math.min(lowest, c);
                if (c > lastTrial) {
                    next = next == NONE ? c : Math.min(next, c);
                }
            }
        }
        return next == NONE ? lowest : next;
    }

    /**
     * Whether a context is tried before those that do not go first, because it is likely to fit. No effect on what is
     * measured, nor on contexts that passed.
     *
     * @param context 0..maxContexts
     * @param goes    false, as at the beginning: it is tried in its turn
     */
    public void goesFirst(final int context, final boolean goes) {
        first[context] = goes;
    }

    /**
     * Whether a context may run beside the job that began last.
     *
     * @param context 0..maxContexts
     * @return false: it is to be held until that job has ended
     */
    public boolean mayRunBeside(final int context) {
        if (!isKnown[context]) {
            isKnown[context] = true;
            known[knownCount++] = context;
            holdJobs[context] = HOLD_FIRST;
        }
        askedJob[context] = job;
        return context == trial || groupTurn && passed[context];
    }

    /**
     * The job that began last has ended, and nothing but the contexts that ran beside it can have made it longer: it
     * was neither preempted nor did it wait.
     *
     * @param tookNs from its begin to its end, 0 or more
     * @param beside contexts that ran beside it
     * @param count  how many elements of the array are used; 0: it ran alone
     */
    public void observed(final long tookNs, final int[] beside, final int count) {
        job++;
        if (count == 0) {
            observedAlone(tookNs);
        }
        final long allowedNs = allowanceNs();
        final long excessNs = count == 0 ? 0 : tookNs - aloneNs;
        creditNs = Math.min(creditNs + allowedNs - excessNs, CREDIT_JOBS * allowedNs);
        if (count == 0 || aloneCount == 0) {
            return;
        }
        final boolean isOver = excessNs > allowedNs;
        if (trial != NONE) {
            judge(trial, isOver);
        } else {
            judgeGroup(beside, count, isOver);
        }
    }

    private void observedAlone(final long tookNs) {
        alone[aloneAt] = tookNs;
        aloneAt = (aloneAt + 1) % ALONE_KEPT;
        aloneCount = Math.min(aloneCount + 1, ALONE_KEPT);
        System.arraycopy(alone, 0, sorted, 0, aloneCount);
        Arrays.sort(sorted, 0, aloneCount);
        aloneNs = sorted[aloneCount / 2];
    }

    private void judge(final int c, final boolean isOver) {
        if (!isOver) {
            strikes[c] = 0;
            if (++passes[c] >= PASSES) {
                passed[c] = true;
                passes[c] = 0;
            }
            return;
        }
        passes[c] = 0;
        if (++strikes[c] >= STRIKES) {
            strikes[c] = STRIKES - 1;   // one more trial, then it is held again
            heldUntilJob[c] = job + holdJobs[c];
            holdJobs[c] = Math.min(2 * holdJobs[c], HOLD_LAST);
            found++;
        }
    }

    private void judgeGroup(final int[] beside, final int count, final boolean isOver) {
        groupStrikes = isOver ? groupStrikes + 1 : 0;
        if (groupStrikes < GROUP_STRIKES) {
            return;
        }
        groupStrikes = 0;
        for (int i = 0; i < count; i++) {
            passed[beside[i]] = false;
            passes[beside[i]] = 0;
        }
    }

    private long allowanceNs() {
        return aloneNs / 100 * percent + aloneNs % 100 * percent / 100;
    }

    /**
     * A context is gone, and its id may be used again.
     *
     * @param context 0..maxContexts
     */
    public void forget(final int context) {
        for (int i = 0; i < knownCount; i++) {
            if (known[i] == context) {
                known[i] = known[--knownCount];
                break;
            }
        }
        isKnown[context] = false;
        passed[context] = false;
        strikes[context] = 0;
        passes[context] = 0;
        heldUntilJob[context] = 0;
        askedJob[context] = UNKNOWN;
        first[context] = false;
    }

    /**
     * What a job takes alone.
     *
     * @return ns, the median of the last jobs alone; 0 before the first
     */
    public long aloneNs() {
        return aloneNs;
    }

    /**
     * What is left of the budget.
     *
     * @return ns; negative: it is exceeded, and nothing runs beside jobs until it is paid back
     */
    public long creditNs() {
        return creditNs;
    }

    /**
     * How often a context was found unfit and held.
     *
     * @return count
     */
    public long heldCount() {
        return found;
    }

    /**
     * Whether a context has passed its trials.
     *
     * @param context 0..maxContexts
     * @return false while it is new, on trial or held
     */
    public boolean hasPassed(final int context) {
        return passed[context];
    }
}
