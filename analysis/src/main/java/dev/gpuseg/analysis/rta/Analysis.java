/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;

/** A schedulability analysis. Implementations have no state that outlives a call and may be shared between threads. */
public interface Analysis {
    /** What a positive verdict guarantees on the mechanism that this project runs. */
    enum Claim {
        /** Holds for the live mechanism: no simulated response may exceed a bound. */
        SOUND,
        /** Proven for a mechanism that this scheduler does not have: no simulated response of it may exceed a bound. */
        PROVEN_ELSEWHERE,
        /** Holds for the abstract model of its paper, or for another protocol; not for the live mechanism. */
        MODEL_ONLY,
        /** Known to be exceeded in its own model; kept for comparison. */
        COMPARISON
    }

    /**
     * What is known of this analysis apart from its equations.
     *
     * @return its row in {@link Analyses}
     */
    AnalysisDescription description();

    /**
     * The name used on the command line and in results.
     *
     * @return lower case with hyphens
     */
    default String name() {
        return description().name();
    }

    /**
     * The wait mode that the analysis assumes, whatever the set says.
     *
     * @return the mode
     */
    default WaitMode mode() {
        return description().mode();
    }

    /**
     * What a positive verdict guarantees, for sets that keep all hypotheses; {@link Soundness} says it of one set.
     *
     * @return the claim
     */
    default Claim claim() {
        return description().claim();
    }

    /**
     * What it analyses and from where, in one line.
     *
     * @return text for lists and reports
     */
    default String summary() {
        return description().summary();
    }

    /**
     * Analyses a set and its chains.
     *
     * @param set every real-time task with a core and priorities
     * @return bounds and terms for each task, and bounds for each chain
     * @throws dev.gpuseg.analysis.model.InvalidModelException if a core or priority is missing
     */
    default AnalysisResult analyse(final TaskSet set) {
        if (!set.chains().isEmpty()) {
            return ChainAnalysis.analyse(this, set);
        }
        if (WeaklyHard.concerns(set)) {
            return WeaklyHard.analyse(this, set);
        }
        return analyse(needsPriorities() ? PreparedSet.of(set) : PreparedSet.withoutPriorities(set));
    }

    /**
     * Whether the analysis needs priorities of real-time tasks.
     *
     * @return false where deadlines alone decide
     */
    default boolean needsPriorities() {
        return true;
    }

    /**
     * Analyses the tasks of a prepared set; all bounds and terms. Its chains do not count: if it has any, use
     * {@link #analyse(TaskSet)}.
     *
     * @param set from {@link PreparedSet#of}
     * @return bounds and terms for each task
     */
    AnalysisResult analyse(PreparedSet set);

    /**
     * The verdict on the tasks alone, for sweeps: stops at the first task that fails and allocates little.
     *
     * @param set from {@link PreparedSet#of}
     * @return true if every real-time task meets its deadline
     */
    boolean isSchedulable(PreparedSet set);
}
