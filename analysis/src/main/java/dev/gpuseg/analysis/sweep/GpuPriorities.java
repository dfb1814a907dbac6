/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.GpuPrioritySearch;
import dev.gpuseg.analysis.rta.GpuPrioritySearch.Strategy;
import dev.gpuseg.analysis.rta.PreparedSet;

/** Retries with GPU priorities of their own, for sets that fail with one order for cores and GPU. */
final class GpuPriorities {
    private GpuPriorities() {
    }

    /** Whether the published search finds GPU priorities that the analysis accepts. */
    static boolean published(final Analysis analysis, final PreparedSet set) {
        return GpuPrioritySearch.levels(set, analysis, Strategy.PUBLISHED) != null;
    }

    /** Whether the frontier search finds GPU priorities that the analysis accepts. */
    static boolean frontier(final Analysis analysis, final PreparedSet set) {
        return GpuPrioritySearch.levels(set, analysis, Strategy.FRONTIER) != null;
    }
}
