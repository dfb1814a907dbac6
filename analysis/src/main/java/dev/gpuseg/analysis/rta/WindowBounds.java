/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.Optional;

/**
 * What theorem 1 of {@code docs/window.md} says of a set whose threads suspend: the numbers that a certificate holds.
 * Arrays are by index in the file; best-effort tasks have 0 and no windows.
 *
 * @param responseNs R: bound from arrival to completion
 * @param epsilonNs  the epsilon that the recurrence of the task uses
 * @param lengthNs   F: bound on the length of each window of the task, in the order of its GPU segments
 */
public record WindowBounds(long[] responseNs, long[] epsilonNs, long[][] lengthNs) {
    /**
     * Analyses a set.
     *
     * @param set every real-time task with a core and priorities
     * @return the bounds, or empty if a task misses its deadline
     * @throws dev.gpuseg.analysis.model.InvalidModelException if a core or priority is missing
     */
    public static Optional<WindowBounds> of(final TaskSet set) {
        final PreparedSet s = PreparedSet.of(set);
        final AnalysisResult result = Analyses.get("gcaps-window-" + WaitMode.SUSPEND.word()).analyse(s);
        if (!result.schedulable()) {
            return Optional.empty();
        }
        final long[] r = s.deadline.clone();
        for (int p = 0; p < s.realTimeCount; p++) {
            r[p] = result.tasks().get(s.index[p]).wcrtNs();
        }
        final Windows windows = new Windows(s, r, Windows.Order.FIXED, false, false, false);
        ExclusiveWindow.refineByGpuPriority(s, windows);
        final long[] response = new long[s.count];
        final long[] epsilon = new long[s.count];
        final long[][] length = new long[s.count][0];
        for (int p = 0; p < s.realTimeCount; p++) {
            final int i = s.index[p];
            response[i] = r[p];
            epsilon[i] = s.epsilon[p];
            length[i] = new long[s.eta[p]];
            for (int j = 0; j < s.eta[p]; j++) {
                length[i][j] = windows.windowLength(p, s.segmentStart[p] + j);
            }
        }
        return Optional.of(new WindowBounds(response, epsilon, length));
    }
}
