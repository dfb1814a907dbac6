/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/** A sink that measures how long each context was wanted on, and notes what else it was told. */
final class OnTime extends Recorder {
    final long[] onNs = new long[32];
    final boolean[] on = new boolean[32];
    final long[] timesliceNs = new long[32];
    private long nowNs;

    OnTime() {
        Arrays.fill(on, true);
    }

    /** Time passes. */
    void until(final long ns) {
        for (int c = 0; c < on.length; c++) {
            onNs[c] += on[c] ? ns - nowNs : 0;
        }
        nowNs = ns;
    }

    void reset() {
        Arrays.fill(onNs, 0);
    }

    int count(final int from, final int to) {
        int n = 0;
        for (int c = from; c < to; c++) {
            n += on[c] ? 1 : 0;
        }
        return n;
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        super.onContextDesired(gpu, contextId, enabled);
        on[contextId] = enabled;
    }

    @Override
    public void onTimeslice(final int gpu, final int contextId, final long ns) {
        timesliceNs[contextId] = ns;
    }
}
