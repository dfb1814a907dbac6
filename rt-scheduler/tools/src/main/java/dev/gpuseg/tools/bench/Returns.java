/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.util.ArrayList;
import java.util.List;

/**
 * What bringing others back takes: the driver's calls of one update, added. The enforcer makes them one right after the
 * other. It also enables contexts that never were disabled, whenever a process makes channels; these calls are updates
 * of their own, and those of before the first disable bring nothing back.
 */
final class Returns {
    /** Calls that begin later than this after the last one's end are another update's. */
    static final long GAP_NS = 1_000_000;

    private final List<Long> sums = new ArrayList<>();
    private boolean disabled;
    private long beganNs;
    private long endNs;
    private long sumNs;

    /** Something was disabled. */
    void disabled() {
        disabled = true;
        finish();
    }

    /** A context was enabled by a call; contexts of one call share its times. */
    void enabled(final long callBeganNs, final long tookNs) {
        if (!disabled || sumNs > 0 && callBeganNs == beganNs) {
            return;
        }
        if (callBeganNs - endNs > GAP_NS) {
            finish();
        }
        beganNs = callBeganNs;
        endNs = callBeganNs + tookNs;
        sumNs += tookNs;
    }

    private void finish() {
        if (sumNs > 0) {
            sums.add(sumNs);
        }
        sumNs = 0;
    }

    /** By update, in order, ns. */
    List<Long> sums() {
        finish();
        return sums;
    }
}
