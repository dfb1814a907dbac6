/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.io.Serializable;
import java.util.List;

/**
 * What a sweep does with the sets of one point, as a value: another thread or another machine can do a part of it. The
 * results of set k depend on this value and k alone, so any division of the sets gives the same sums.
 */
public interface SetWork extends Serializable {
    /**
     * Names of the counts.
     *
     * @return in a fixed order; those that begin with {@value Tally#MAX} are combined by their maximum, others summed
     */
    List<String> columns();

    /** A new judge of its own for one thread. */
    SetJudge open();

    /**
     * Judges sets on the calling thread.
     *
     * @param from first set
     * @param to   one after the last set
     * @return their counts and findings
     */
    default Tally tally(final long from, final long to) {
        final long[] counts = new long[columns().size()];
        final SetJudge judge = open();
        for (long k = from; k < to; k++) {
            judge.judge(k, counts);
        }
        return new Tally(counts, judge.findings());
    }
}
