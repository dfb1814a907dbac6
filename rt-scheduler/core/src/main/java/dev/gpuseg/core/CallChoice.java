/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Whether the segments of a task end sooner if best effort is disabled for them, or if time slices alone keep it off.
 * A kernel without gaps is served best without: the call that disables others interrupts it, too. A segment that
 * launches piece by piece needs the call, since best effort comes in between.
 *
 * <p>The first segments that best effort could disturb are tried both ways in turn, {@value #TRIALS} each; then the way
 * of the lower median stays. A segment that goes without gets the call after all when it lasts twice as long as one
 * ever did; {@value #TRIALS} of those, and all is tried anew.
 *
 * <p>Not thread-safe; allocates nothing after construction.
 */
public final class CallChoice {
    /** Segments of each way before one is chosen. */
    public static final int TRIALS = 8;

    private final long[] withNs = new long[TRIALS];
    private final long[] withoutNs = new long[TRIALS];
    private int with;
    private int without;
    private boolean goesWithout;
    private long longestNs;
    private int late;

    /**
     * How long the next segment may go without the call.
     *
     * @return ns from its begin; 0 = the call is made at once
     */
    public long patienceNs() {
        return isChosen() ? goesWithout ? 2 * longestNs : 0 : with <= without ? 0 : 2 * longestNs;
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
        if (isChosen()) {
            late += patienceNs > 0 && tookNs > patienceNs ? 1 : 0;
            if (late == TRIALS) {
                with = 0;
                without = 0;
                longestNs = 0;
            }
            return;
        }
        longestNs = Math.max(longestNs, tookNs);
        if (patienceNs == 0) {
            withNs[with++] = tookNs;
        } else {
            withoutNs[without++] = tookNs;
        }
        if (isChosen()) {
            goesWithout = median(withoutNs) <= median(withNs);
            late = 0;
        }
    }

    private static long median(final long[] values) {
        Arrays.sort(values);
        return values[values.length / 2];
    }
}
