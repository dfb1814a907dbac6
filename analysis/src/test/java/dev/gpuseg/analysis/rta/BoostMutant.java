/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/** Theorem 11 with one error in one of its terms. */
public enum BoostMutant {
    /** F_ij without the windows of others. */
    ALONE_IN_WINDOW,
    /** One request fewer. */
    REQUESTS,
    /** Requests without jitter. */
    JITTER_OF_REQUESTS,
    /** eta_i stretches. */
    STRETCHES,
    /** One job of each lower task. */
    BLOCKERS,
    /** Q_h without its updates. */
    UPDATES_OF_LOCAL,
    /** A local window that is ahead has no carry-in. */
    JITTER_OF_LOCAL,
    /** A remote window that is ahead has no carry-in. */
    JITTER_OF_REMOTE,
    /** The overlap of host and device part cannot be lost. */
    SPAN,
    /** One job fewer with an earlier deadline. */
    DEADLINES,
    /** No stops. */
    STOPS;

    /**
     * The analysis with the error.
     *
     * @param name of the analysis: one of theorem 11
     * @return an analysis that claims what the right one claims
     */
    public Analysis of(final String name) {
        return new BoostedWindows(Analyses.describe(name), Wrong::new);
    }

    private final class Wrong extends BoostCharges {
        /** Also called while the object is made. */
        private long totalOf(final int segment) {
            return prepared().segmentTotal[segment];
        }

        Wrong(final PreparedSet s, final long[] r, final boolean byDeadline, final boolean searching) {
            super(s, r, byDeadline, searching);
        }

        @Override
        long window(final int i, final int j) {
            final long length = super.window(i, j);
            return BoostMutant.this == ALONE_IN_WINDOW ? Math.min(length, aloneInWindow(i, j)) : length;
        }

        @Override
        long requests(final int i, final long jitter, final long period) {
            final long jobs = super.requests(i, BoostMutant.this == JITTER_OF_REQUESTS ? 0 : jitter, period);
            return BoostMutant.this == REQUESTS ? Math.max(0, jobs - 1) : jobs;
        }

        @Override
        long stretches(final int i) {
            return super.stretches(i) - (BoostMutant.this == STRETCHES ? 1 : 0);
        }

        @Override
        long blockers(final int l, final long w) {
            return BoostMutant.this == BLOCKERS ? 1 : super.blockers(l, w);
        }

        @Override
        long quietCost(final int h) {
            return super.quietCost(h)
                - (BoostMutant.this == UPDATES_OF_LOCAL ? GcapsSuspend.updates(prepared(), h) : 0);
        }

        @Override
        long quietJitter(final int h) {
            return BoostMutant.this == JITTER_OF_LOCAL ? 0 : super.quietJitter(h);
        }

        @Override
        long holdJitter(final int h) {
            return BoostMutant.this == JITTER_OF_REMOTE ? 0 : super.holdJitter(h);
        }

        @Override
        long spanOf(final int segment) {
            return BoostMutant.this == SPAN ? totalOf(segment) : super.spanOf(segment);
        }

        @Override
        long deadlineLimit(final int i, final int h) {
            final long limit = super.deadlineLimit(i, h);
            return BoostMutant.this == DEADLINES ? Math.max(0, limit - 1) : limit;
        }

        @Override
        long stopJobs(final int h, final int c, final long jitter) {
            return BoostMutant.this == STOPS ? 0 : super.stopJobs(h, c, jitter);
        }
    }
}
