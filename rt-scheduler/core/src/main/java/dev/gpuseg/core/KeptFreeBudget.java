/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * For how long one GPU may be kept free for expected begins: a share of the time that best-effort work would have
 * without, which is saved up to a limit. What real-time segments and changes between them and best-effort work take is
 * none of it. Times are ns and do not decrease. Not thread-safe; allocates nothing after construction.
 */
final class KeptFreeBudget {
    /** The budget of this time can be used at once. */
    private static final long SAVED_NS = 200_000_000;
    /** What was so long ago counts half for {@link #ratePpm}. */
    private static final long WINDOW_NS = 1_000_000_000;

    private long ppm;
    private long savedNs;
    private long atNs;
    private boolean lent = true;
    private long lentFromNs;
    private long allNs;
    private long lentNs;

    KeptFreeBudget(final long ppm) {
        this.ppm = ppm;
    }

    /** Another share, in ppm; what was saved is lost. */
    void setPpm(final long newPpm) {
        ppm = newPpm;
        savedNs = 0;
    }

    /** Whether best-effort work has the GPU, or would have if it was not kept free. */
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
        savedNs = Math.min(share(SAVED_NS), savedNs + share(Math.min(SAVED_NS, toBestEffortNs)));
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

    /** Whether something is saved. */
    boolean isLeft(final long nowNs) {
        advance(nowNs);
        return savedNs > 0;
    }

    /** It was kept free for so long, whether that was saved or not. */
    void spend(final long ns, final long nowNs) {
        advance(nowNs);
        savedNs -= ns;
    }

    /** What may be used for long: ppm of all of the time, as it was divided lately. */
    long ratePpm() {
        return allNs == 0 ? ppm : ppm * lentNs / allNs;
    }
}
