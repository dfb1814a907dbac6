/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * Whether the best-effort programs of one GPU share it all together, since one alone leaves it idle. With
 * {@linkplain BestEffortTurns turns} a program that launches now and then keeps the GPU from the others while it
 * computes on its CPU: three of them did 0.4 to 0.6 of what the driver lets them do, programs that fill it 1.09
 * ({@code rt-scheduler/docs/adr/0066-turns-and-slices.md}).
 *
 * <p>They go together after {@value #LOOKS} looks in a row in which the GPU worked for less than {@value #LITTLE} per
 * mille of the time that best effort had. After as many with at least {@value #FULL}, and {@value #FIRST_TRIAL_NS} ns
 * at the earliest, turns are tried again. If those leave the GPU idle, too, the next trial comes after twice as long,
 * at most {@value #LAST_TRIAL_NS} ns.
 *
 * <p>All times in ns of one clock. Not thread-safe; reads no clock, and allocates nothing.
 */
public final class BestEffortFill {
    /** Looks that say the same. */
    public static final int LOOKS = 3;
    /** Two such programs fit beside each other. */
    public static final int LITTLE = 500;
    /** Together they may have less than each wants. */
    public static final int FULL = 950;
    /** How long programs are together at least. */
    public static final long FIRST_TRIAL_NS = 10_000_000_000L;
    /** The longest time from one trial of turns to the next. */
    public static final long LAST_TRIAL_NS = 320_000_000_000L;

    private static final long LONG_AGO = Long.MIN_VALUE;

    private boolean together;
    private int looks;
    private long sinceNs = LONG_AGO;
    private long trialNs = FIRST_TRIAL_NS;

    /** Whether they are together. */
    public boolean isTogether() {
        return together;
    }

    /**
     * A look at what the GPU did.
     *
     * @param permille of the time that best effort had the GPU worked, 0..1000
     * @param nowNs    now
     * @return whether {@link #isTogether} is news
     */
    public boolean look(final int permille, final long nowNs) {
        final boolean other = together ? permille >= FULL && !isYounger(trialNs, nowNs) : permille < LITTLE;
        looks = other ? looks + 1 : 0;
        if (looks < LOOKS) {
            return false;
        }
        looks = 0;
        if (!together) {   // turns that were only tried end within the shortest time
            trialNs = isYounger(FIRST_TRIAL_NS, nowNs) ? Math.min(2 * trialNs, LAST_TRIAL_NS)
                : FIRST_TRIAL_NS;
        }
        together = !together;
        sinceNs = nowNs;
        return true;
    }

    private boolean isYounger(final long ageNs, final long nowNs) {
        return sinceNs != LONG_AGO && nowNs - sinceNs < ageNs;
    }

    /** Other programs take part: looks may say something else from now on. */
    public void changed() {
        sinceNs = LONG_AGO;
        trialNs = FIRST_TRIAL_NS;
    }
}
