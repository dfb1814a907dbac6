/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.Arrays;

/**
 * Spare pages of counts for {@link ResponseTimes}, so that a task which meets a new order of magnitude allocates
 * nothing. Filled while tasks are opened, which may allocate; pages of closed tasks are used again. Dispatcher thread
 * only.
 */
final class ResponsePages {
    /** Counts of a page: half of a doubling of the response time. */
    static final int COUNTS = 64;
    private static final int SPARE_MAX = 256;
    private static final int SPARE_LEAST = 64;

    private final long[][] spare = new long[SPARE_MAX][];
    private int spares;

    /** At least 64 pages are there afterwards. Allocates. */
    void fill() {
        while (spares < SPARE_LEAST) {
            spare[spares++] = new long[COUNTS];
        }
    }

    /** A page of zeros; a new one only if more were taken than {@link #fill} has made. */
    long[] take() {
        if (spares == 0) {
            return new long[COUNTS];
        }
        final long[] page = spare[--spares];
        spare[spares] = null;
        return page;
    }

    /** Takes a page back that nobody uses any more. */
    void give(final long[] page) {
        if (spares < SPARE_MAX) {
            Arrays.fill(page, 0);
            spare[spares++] = page;
        }
    }

    /** Pages that are there. */
    int spares() {
        return spares;
    }
}
