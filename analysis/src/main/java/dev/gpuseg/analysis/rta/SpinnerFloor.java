/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import java.util.Arrays;

/**
 * The lowest GPU priority, per GPU, among the tasks that may spin above task i on its core. A remote task delays i
 * through such a spinner if and only if it outranks that lowest one.
 */
final class SpinnerFloor {
    private final PreparedSet s;
    private final int[] floor;

    SpinnerFloor(final PreparedSet s) {
        this.s = s;
        floor = new int[s.gpuCount];
    }

    /** Considers the GPU tasks of higher CPU priority on the core of i. */
    void moveTo(final int i) {
        Arrays.fill(floor, Integer.MAX_VALUE);
        for (int l = 0; l < s.realTimeCount; l++) {
            if (s.gpu[l] >= 0 && s.cpu[l] == s.cpu[i] && s.isCpuHigher(l, i)) {
                floor[s.gpu[l]] = Math.min(floor[s.gpu[l]], s.gpuPriority[l]);
            }
        }
    }

    /** True if GPU task h, on another core, outranks one of them (ties count). */
    boolean isDelayedBy(final int h) {
        return s.gpuPriority[h] >= floor[s.gpu[h]];
    }
}
