/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

/**
 * A weakly hard constraint: of any so many consecutive jobs of a task, at most so many may end after their deadlines.
 *
 * @param misses most late jobs, 0 or more, less than {@code jobs}
 * @param jobs   of so many consecutive ones, 1..{@link #MAX_JOBS}
 */
public record MissLimit(int misses, int jobs) {
    /** Longest run of jobs that a constraint may speak of. */
    public static final int MAX_JOBS = 100_000;

    /** Checks the numbers. */
    public MissLimit {
        if (jobs < 1 || jobs > MAX_JOBS) {
            throw new InvalidModelException("jobs is " + jobs + "; it must be 1.." + MAX_JOBS);
        }
        if (misses < 0 || misses >= jobs) {
            throw new InvalidModelException("misses is " + misses + "; it must be 0.." + (jobs - 1)
                + ", less than jobs");
        }
    }
}
