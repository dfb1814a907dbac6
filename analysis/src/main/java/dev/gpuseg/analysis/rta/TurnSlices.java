/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;

/** The time slices of real-time contexts with which the bounds by turns hold (hypothesis U5). Stateless. */
public final class TurnSlices {
    private TurnSlices() {
    }

    /**
     * The slices that the analysis chose.
     *
     * @param set with turns, every real-time task with a core and priorities
     * @return ns by index in the file; 0 of a task that is best effort or uses no GPU
     * @throws dev.gpuseg.analysis.model.InvalidModelException if the analysis refuses the set
     */
    public static long[] of(final TaskSet set) {
        final PreparedSet s = PreparedSet.of(set);
        final TurnsSuspend.Work work = ((TurnsSuspend) Analyses.get(TurnsSuspend.NAME)).begin(s, s.deadline.clone());
        final long[] slices = new long[s.count];
        for (int p = 0; p < s.realTimeCount; p++) {
            slices[s.index[p]] = work.slice[p];
        }
        return slices;
    }
}
