/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;

/** Retries with GPU priorities of their own. */
final class GpuPriorities {
    private GpuPriorities() {
    }

    static boolean published(final Analysis analysis, final TaskSet set) {
        return false;
    }

    static boolean frontier(final Analysis analysis, final TaskSet set) {
        return false;
    }
}
