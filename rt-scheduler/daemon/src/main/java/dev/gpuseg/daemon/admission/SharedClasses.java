/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.core.Policy;
import java.util.List;

/**
 * Theorem 12 ({@code analysis/docs/classes.md}): where no two real-time tasks of a GPU are in one class, policy classes
 * decides as fixed priority does. Of tasks of one class nothing is proven: they share the GPU as the driver divides it.
 */
final class SharedClasses {
    private SharedClasses() {
    }

    /**
     * What speaks against the hypothesis.
     *
     * @param policy   what decides
     * @param admitted every open task with its present priorities
     * @return one line, empty if it holds, and for every policy without classes
     */
    static String conflict(final Policy policy, final List<Admitted> admitted) {
        for (int i = 0; i < admitted.size(); i++) {
            final Admitted a = admitted.get(i);
            for (int k = i + 1; k < admitted.size(); k++) {
                final Admitted b = admitted.get(k);
                if (a.isRealTime() && b.isRealTime() && a.request().gpu() == b.request().gpu()
                    && policy.runTogether(a.gpuPriority(), b.gpuPriority())) {
                    return "tasks \"" + a.request().name() + "\" (gpu_priority " + a.gpuPriority() + ") and \""
                        + b.request().name() + "\" (gpu_priority " + b.gpuPriority() + ") are in one class of GPU "
                        + a.request().gpu() + " and run together, for which nothing is proven; give them priorities of "
                        + "different classes, or use policy fp";
                }
            }
        }
        return "";
    }
}
