/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.MissLimit;
import java.util.Objects;

/**
 * How many jobs of a task can be late.
 *
 * @param task     its name
 * @param limit    what its set allows
 * @param bound    of any {@link MissLimit#jobs} consecutive jobs at most so many end after their deadlines; null: there
 *                 is no bound below the number of jobs
 * @param lateNs   bound on the response of every job, late ones included; null: there is none
 * @param usualNs  bound on the response of a job that no overload job disturbs; null: there is none
 * @param problem  why there is no bound; empty if there is one
 */
public record MissBound(String task, MissLimit limit, Long bound, Long lateNs, Long usualNs, String problem) {
    /** Requires names. */
    public MissBound {
        Objects.requireNonNull(task, "task");
        Objects.requireNonNull(limit, "limit");
        Objects.requireNonNull(problem, "problem");
    }

    /** Whether the limit is kept; true if there is a bound, and it is at most the limit. */
    public boolean holds() {
        return bound != null && bound <= limit.misses();
    }
}
