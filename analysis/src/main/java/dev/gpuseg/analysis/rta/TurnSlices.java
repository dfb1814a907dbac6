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
        final TurnsSuspend.Work work = ((TurnsSuspend) Analyses.byTurns()).begin(s, s.deadline.clone());
        final long[] slices = new long[s.count];
        for (int p = 0; p < s.realTimeCount; p++) {
            slices[s.index[p]] = work.slice[p];
        }
        return slices;
    }

    /**
     * What waits and calls for others can take from a job of the only real-time task with windows: what a job pays that
     * is in progress when begins change to calls (theorem 17 of {@code docs/turns.md}).
     *
     * @param set  with turns, every real-time task with a core and priorities
     * @param name of the task
     * @return ns
     * @throws dev.gpuseg.analysis.model.InvalidModelException if the analysis refuses the set
     */
    public static long waitNs(final TaskSet set, final String name) {
        final PreparedSet s = PreparedSet.of(set);
        final TurnsSuspend.Work work = ((TurnsSuspend) Analyses.byTurns()).begin(s, s.deadline.clone());
        for (int p = 0; p < s.realTimeCount; p++) {
            if (set.tasks().get(s.index[p]).name().equals(name)) {
                return work.waitNs(p);
            }
        }
        throw new IllegalArgumentException("task \"" + name + "\" is not a real-time task of the set");
    }
}
