/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import java.util.List;

/** Judges numbered sets one after the other. Not thread-safe. */
public interface SetJudge {
    /**
     * Adds the results of set k to the counts. What it adds depends on k alone.
     *
     * @param k      number of the set
     * @param counts one for each column of the work, changed
     */
    void judge(long k, long[] counts);

    /**
     * What is to be kept as files of the sets judged so far.
     *
     * @return in the order in which it was found; a few hundred at most
     */
    default List<Finding> findings() {
        return List.of();
    }
}
