/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Whether the segments of a task end sooner if best effort is disabled for them, or if time slices alone keep it off.
 * A kernel without gaps is served best without: the call that disables others interrupts it, too. A segment that
 * launches piece by piece needs the call, since best effort comes in between.
 *
 * <p>The first segments that best effort could disturb are tried both ways in turn, {@value #TRIALS} each; then the way
 * of the lower median stays. Since something may have disturbed the trials, one segment goes the other way after
 * {@value #FIRST_PROBE}, then after twice as many, up to {@value #LAST_PROBE}; if it is shorter than the latest ones,
 * all is tried anew. A segment that goes without gets the call after all when it lasts twice as long as one ever did;
 * {@value #TRIALS} of those, and all is tried anew, too.
 *
 * <p>Not thread-safe; allocates nothing after construction.
 */
public final class CallChoice {
    /** Segments of each way before one is chosen. */
    public static final int TRIALS = 8;
    /** Segments of the chosen way before one of the other, after a change of the choice. */
    public static final int FIRST_PROBE = 32;
    /** The same, where the choice has stayed for long. */
    public static final int LAST_PROBE = 4096;

    /** Of the trials; those of the chosen way are then overwritten by its latest. */
    private final long[] withNs = new long[TRIALS];
    private final long[] withoutNs = new long[TRIALS];
    private int with;
    private int without;
    private boolean goesWithout;
    private long longestNs;
    private int late;
    private int sinceProbe;
    private int probeAfter = FIRST_PROBE / 2;

    /**
     * How long the next segment may go without the call.
     *
     * @return ns from its begin; 0 = the call is made at once
     */
    public long patienceNs() {
        final boolean next = isChosen() ? goesWithout != (sinceProbe >= probeAfter) : with > without;
        return next ? 2 * longestNs : 0;
    }

    /** Whether enough was tried. */
    public boolean isChosen() {
        return without == TRIALS;
    }

    /**
     * A segment ended that nothing but best effort could disturb.
     *
     * @param patienceNs what {@link #patienceNs} said at its begin
     * @param tookNs     from its begin to its end
     */
    public void ended(final long patienceNs, final long tookNs) {
        final boolean wentWithout = patienceNs > 0;
        if (!isChosen()) {
            tried(wentWithout, tookNs);
        } else if (wentWithout == goesWithout) {
            (goesWithout ? withoutNs : withNs)[sinceProbe++ % TRIALS] = tookNs;
            late += wentWithout && tookNs > patienceNs ? 1 : 0;
            if (late == TRIALS) {
                tryAnew();
            }
        } else if (tookNs < median(goesWithout ? withoutNs : withNs)) {
            tryAnew();
        } else {
            stays();
        }
    }

    private void tried(final boolean wentWithout, final long tookNs) {
        longestNs = Math.max(longestNs, tookNs);
        if (wentWithout) {
            withoutNs[without++] = tookNs;
        } else {
            withNs[with++] = tookNs;
        }
        if (isChosen()) {
            final boolean before = goesWithout;
            goesWithout = median(withoutNs) <= median(withNs);
            late = 0;
            if (goesWithout == before) {
                stays();
            } else {
                sinceProbe = 0;
                probeAfter = FIRST_PROBE;
            }
        }
    }

    private void stays() {
        sinceProbe = 0;
        probeAfter = Math.min(2 * probeAfter, LAST_PROBE);
    }

    /** What others do besides has changed: both ways are tried again. */
    public void tryAnew() {
        with = 0;
        without = 0;
        longestNs = 0;
    }

    private static long median(final long[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
