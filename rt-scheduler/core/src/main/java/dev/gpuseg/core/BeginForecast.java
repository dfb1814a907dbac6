/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * When a task will begin next, from its period and its begins so far. Two forecasts run side by side, and the one whose
 * errors scatter less is used:
 * <ul>
 * <li>the <em>grid</em>: a phase that follows the begins slowly (or the marked releases at once) and a period that
 * follows them more slowly still. It is the better one if the program wakes at fixed instants and then takes more or
 * less long to begin;
 * <li>the <em>last begin</em> plus a period: the better one if the program sleeps for a period after its work, or
 * drifts.
 * </ul>
 * The distribution of the newest errors corrects what is systematic: a constant distance of release and begin, a period
 * that is not quite the declared one. If no period is declared and the begins show none, but their distances repeat
 * after two or three, the distances are expected in turn ({@link IntervalCycle}). A period that was learned before is
 * taken up again after two begins that show it.
 *
 * <p>A begin that fits neither forecast is ignored if another was shortly before (a further segment of the same job);
 * three in a row start the forecast anew. Integers only, so equal begins give equal
 * forecasts.
 */
final class BeginForecast {
    /** Begins that fit before the next one is forecast. */
    static final int FITS_MIN = 4;
    /** Expected begins without a begin, in a row, after which none is expected until begins fit again. */
    static final int MISSES_MAX = 3;
    /** The shortest period that is looked at, ns. */
    static final long PERIOD_MIN_NS = 500_000;
    /** The longest, ns. */
    static final long PERIOD_MAX_NS = 10_000_000_000L;

    private static final int WINDOW = 64;
    private static final int INTERVALS = 16;
    private static final int INTERVALS_MIN = 6;
    private static final int MISFITS_MAX = 3;
    /** Where the period was learned a misfit counts 2, and a begin that fits takes 1 back: most may be misfits. */
    private static final int LEARNED_MISFITS_MAX = 5;
    private static final int STRIDES = 3;
    private static final int PHASE_SHIFT = 3;
    private static final int PERIOD_SHIFT = 7;
    private static final int TOLERANCE_SHIFT = 2;
    private static final int PULL_SHIFT = 3;
    private static final int LOW = 100;
    private static final int HALF = 500;
    private static final int HIGH = 900;
    private static final int KNOWN = 2;
    private static final int KNOWN_SHIFT = 3;
    /** Begins that fit, where a known period is taken up again after two. */
    private static final int KNOWN_FITS = 2;

    private final SortedWindow gridErrors = new SortedWindow(WINDOW);
    private final SortedWindow lastErrors = new SortedWindow(WINDOW);
    private final SortedWindow intervals = new SortedWindow(INTERVALS);
    private final IntervalCycle cycle = new IntervalCycle();
    /** Periods that were learned and left, the newest first; 0 = none. */
    private final long[] known = new long[KNOWN];
    /** The newest begin, whether it was looked at or not, and how long it followed the one before. */
    private long newestNs;
    private long intervalNs;
    private long declaredNs;
    private boolean learns;
    private long periodNs;
    private long gridNs;
    private long lastNs;
    private long releaseNs;
    private int begins;
    private int fits;
    private int misfits;
    private int gridMisfits;
    private int missed;
    /** How many periods apart the newest begins are, and how many of them in a row; another stride is taken up then. */
    private long stride;
    private long seenStride;
    private int sameStride;

    /**
     * Starts anew.
     *
     * @param period  declared, ns; 0 = none
     * @param mayLearn whether a period is to be found if none is declared
     */
    void reset(final long period, final boolean mayLearn) {
        declaredNs = period >= PERIOD_MIN_NS && period <= PERIOD_MAX_NS ? period : 0;
        learns = period == 0 && mayLearn;
        begins = 0;
        intervals.clear();
        Arrays.fill(known, 0);
        periodNs = 0;
        restart(0);
    }

    private void restart(final long beginNs) {
        if (declaredNs == 0 && periodNs != 0 && fits >= FITS_MIN) {
            remember();
        }
        intervalNs = 0;
        newestNs = beginNs;
        cycle.clear();
        periodNs = declaredNs;
        gridNs = beginNs;
        lastNs = beginNs;
        releaseNs = 0;
        fits = 0;
        misfits = 0;
        gridMisfits = 0;
        missed = 0;
        stride = 1;
        seenStride = 1;
        sameStride = 0;
        gridErrors.clear();
        lastErrors.clear();
    }

    private void remember() {
        if (!isNear(periodNs, known[0])) {
            known[1] = known[0];
        }
        known[0] = periodNs;
    }

    private static boolean isNear(final long ns, final long periodNs) {
        return periodNs > 0 && Math.abs(ns - periodNs) <= periodNs >> KNOWN_SHIFT;
    }

    /** A segment began. The release of its job is 0 if it was not marked. */
    void begin(final long beginNs, final long markedNs) {
        if (declaredNs == 0 && !learns || markedNs > 0 && markedNs == releaseNs) {
            return;   // nothing to forecast, or a further segment of the same job
        }
        final long sinceNs = beginNs - lastNs;
        begins++;
        if (begins == 1 || sinceNs <= 0 || sinceNs > PERIOD_MAX_NS) {
            restart(beginNs);
            releaseNs = markedNs;
            return;
        }
        if (declaredNs == 0) {
            if (isAsBefore(beginNs)) {
                releaseNs = markedNs;
                return;
            }
            learnPeriod(sinceNs);
        }
        if (periodNs == 0) {
            final boolean hadCycle = cycle.isKnown();
            missed = cycle.add(sinceNs) || !hadCycle ? 0 : missed;
            if (hadCycle && !cycle.isKnown()) {
                intervals.clear();   // those of the cycle would hide a period
            }
            lastNs = beginNs;
            gridNs = beginNs;
            return;
        }
        compare(beginNs, markedNs);
    }

    /** Two begins that show a period of before, and not the one in use: it is taken up again. */
    private boolean isAsBefore(final long beginNs) {
        final long beforeNs = intervalNs;
        intervalNs = beginNs - newestNs;
        newestNs = beginNs;
        for (int i = 0; i < KNOWN; i++) {
            final long againNs = known[i];
            if (isNear(intervalNs, againNs) && isNear(beforeNs, againNs) && !isNear(intervalNs, periodNs)) {
                final long newNs = intervalNs;
                intervals.clear();
                restart(beginNs);
                intervalNs = newNs;
                periodNs = againNs;
                fits = KNOWN_FITS;
                return true;
            }
        }
        return false;
    }

    /** The middle one of the newest distances, if most are near it. */
    private void learnPeriod(final long sinceNs) {
        intervals.add(sinceNs);
        if (periodNs != 0 || intervals.size() < INTERVALS_MIN) {
            return;
        }
        final long middle = intervals.quantile(HALF);
        if (middle >= PERIOD_MIN_NS
            && intervals.quantile(HIGH) - intervals.quantile(LOW) <= middle >> TOLERANCE_SHIFT) {
            periodNs = middle;
        }
    }

    private void compare(final long beginNs, final long markedNs) {
        final boolean isMarked = markedNs > 0 && releaseNs > 0;
        final long gridFrom = isMarked ? releaseNs : gridNs;
        final long gridPeriods = periods((isMarked ? markedNs : beginNs) - gridFrom);
        final long gridError = beginNs - gridFrom - gridPeriods * periodNs;
        final long lastPeriods = periods(beginNs - lastNs);
        final long lastError = beginNs - lastNs - lastPeriods * periodNs;
        final boolean gridFits = gridPeriods >= 1 && (isMarked ? gridError >= 0 && gridError < periodNs
            : fits(gridError));
        final boolean lastFits = lastPeriods >= 1 && fits(lastError);
        if (!gridFits && !lastFits) {
            misfit(beginNs, markedNs);
            return;
        }
        misfits = declaredNs > 0 ? 0 : Math.max(0, misfits - 1);
        missed = 0;
        fits++;
        stride(lastFits ? lastPeriods : gridPeriods);
        if (lastFits) {
            lastErrors.add(lastError);
        }
        if (gridFits) {
            gridMisfits = 0;
            gridErrors.add(gridError);
            follow(isMarked, beginNs, markedNs, gridError, gridPeriods);
        } else if (++gridMisfits >= MISFITS_MAX) {
            gridMisfits = 0;
            gridErrors.clear();
            gridNs = beginNs;
        }
        releaseNs = markedNs;
        lastNs = beginNs;
    }

    /** A task that begins in every second or third period for a while is expected there. */
    private void stride(final long periods) {
        sameStride = periods == seenStride ? sameStride + 1 : 1;
        seenStride = periods;
        if (sameStride >= STRIDES || periods < stride) {
            stride = periods;
        }
    }

    private void follow(final boolean isMarked, final long beginNs, final long markedNs, final long error,
        final long periods) {
        if (isMarked) {
            gridNs = markedNs;
            turn((markedNs - releaseNs - periods * periodNs) / (periods << PHASE_SHIFT));
        } else {
            gridNs = beginNs - error + (fits < 1 << PHASE_SHIFT ? error / (fits + 1) : error >> PHASE_SHIFT);
            turn(error / (periods << PERIOD_SHIFT));
        }
    }

    /** The period follows the begins, by an eighth of the declared one at most. */
    private void turn(final long byNs) {
        periodNs += byNs;
        if (declaredNs > 0) {
            final long mostNs = declaredNs >> PULL_SHIFT;
            periodNs = Math.max(declaredNs - mostNs, Math.min(declaredNs + mostNs, periodNs));
        }
    }

    private void misfit(final long beginNs, final long markedNs) {
        if (beginNs - lastNs < periodNs / 2) {
            return;   // a further segment of the same job
        }
        misfits += declaredNs > 0 ? 1 : 2;
        if (misfits >= (declaredNs > 0 ? MISFITS_MAX : LEARNED_MISFITS_MAX)) {
            intervals.clear();
            restart(beginNs);
        }
        releaseNs = markedNs;
        lastNs = beginNs;
    }

    private long periods(final long ns) {
        return (ns + periodNs / 2) / periodNs;
    }

    private boolean fits(final long errorNs) {
        return Math.abs(errorNs) <= periodNs >> TOLERANCE_SHIFT;
    }

    /** The expected begin did not come. */
    void missed() {
        missed++;
    }

    /** How many expected begins in a row did not come. */
    int misses() {
        return missed;
    }

    /** Whether enough is known to expect a begin. */
    boolean isReady() {
        return missed < MISSES_MAX
            && (usesCycle() || periodNs > 0 && fits >= FITS_MIN && errors().size() >= FITS_MIN - 1);
    }

    /** The usual distance of two begins; 0 if it is not known. */
    long periodNs() {
        return usesCycle() ? cycle.meanNs() : stride * periodNs;
    }

    /** When the next begin would come without any error. Only if {@link #isReady}. */
    long expectedNs() {
        if (usesCycle()) {
            return lastNs + cycle.nextNs(missed);
        }
        if (!usesGrid()) {
            return lastNs + (missed + 1) * stride * periodNs;
        }
        final long from = releaseNs > 0 ? releaseNs : gridNs;
        final long passed = releaseNs > 0 ? 0 : Math.max(0, periods(lastNs - from));
        return from + (passed + (missed + 1) * stride) * periodNs;
    }

    /** How much later than {@link #expectedNs} the newest begins came; negative: earlier. */
    SortedWindow errors() {
        return usesCycle() ? cycle.errors() : usesGrid() ? gridErrors : lastErrors;
    }

    /** How much the begins scatter around the forecast, ns. Only if {@link #isReady}. */
    long spreadNs() {
        return spread(errors());
    }

    private boolean usesCycle() {
        return periodNs == 0 && cycle.isKnown();
    }

    private boolean usesGrid() {
        return lastErrors.size() < FITS_MIN - 1
            || gridErrors.size() >= FITS_MIN - 1 && spread(gridErrors) <= spread(lastErrors);
    }

    private static long spread(final SortedWindow errors) {
        return errors.quantile(HIGH) - errors.quantile(LOW);
    }
}
