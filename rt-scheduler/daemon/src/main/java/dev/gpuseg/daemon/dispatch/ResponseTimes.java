/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import java.util.Arrays;

/**
 * Response times of one task's jobs, 1 ns to an hour, within 1 %. The buckets are those of an HdrHistogram with two
 * digits, and so are the answers; but of its 36 KiB only the pages exist in which something was counted. A page is half
 * of a doubling, so a task whose responses vary by a factor of 16 has 8 of the 72.
 *
 * <p>At most {@link #PAGES_MAX} pages (12.4 KiB): a task that needs more has its further responses counted at the
 * nearest value below that has a page, else above; its greatest one stays exact. So 4,096 tasks of hostile users take
 * 50 MiB at most. Dispatcher thread only.
 */
final class ResponseTimes {
    /** The longest that is told apart, ns. */
    static final long MAX_NS = 3_600_000_000_000L;
    /** Pages of one task at most. */
    static final int PAGES_MAX = 24;
    /** A bucket is one of 128 equal parts of a doubling; 256 below the first doubling. */
    private static final int PART_BITS = 7;
    private static final int PART_MASK = (1 << PART_BITS + 1) - 1;
    private static final int PAGE_BITS = Integer.numberOfTrailingZeros(ResponsePages.COUNTS);
    private static final int PAGES = (bucket(MAX_NS) >> PAGE_BITS) + 1;
    private static final int NONE = 0;
    private static final double PERCENT = 100;

    private final ResponsePages spare;
    /** By number of the page: NONE, or its place in {@link #pages} plus 1. */
    private final byte[] placeOf = new byte[PAGES];
    private final long[][] pages = new long[PAGES_MAX][];
    private int taken;
    private long count;
    private long maxNs;

    ResponseTimes(final ResponsePages spare) {
        this.spare = spare;
    }

    /**
     * Counts one.
     *
     * @param ns less than 1 counts as 1, more than {@link #MAX_NS} as that
     */
    void record(final long ns) {
        final long counted = Math.max(1, Math.min(ns, MAX_NS));
        final int bucket = bucket(counted);
        int page = bucket >> PAGE_BITS;
        int at = bucket & ResponsePages.COUNTS - 1;
        if (placeOf[page] == NONE) {
            if (taken < PAGES_MAX) {
                pages[taken++] = spare.take();
                placeOf[page] = (byte) taken;
            } else {
                final int below = nearestBelow(page);
                at = below < 0 ? 0 : ResponsePages.COUNTS - 1;
                page = below < 0 ? nearestAbove(page) : below;
            }
        }
        pages[placeOf[page] - 1][at]++;
        count++;
        maxNs = Math.max(maxNs, counted);
    }

    private int nearestBelow(final int page) {
        int at = page;
        do {
            at--;
        } while (at >= 0 && placeOf[at] == NONE);
        return at;
    }

    private int nearestAbove(final int page) {
        int at = page;
        do {
            at++;
        } while (placeOf[at] == NONE);
        return at;
    }

    /** How many were counted. */
    long count() {
        return count;
    }

    /**
     * A percentile.
     *
     * @param percentile 0..100, not 0
     * @return the greatest value of its bucket, ns; 0 if nothing was counted
     */
    long percentileNs(final double percentile) {
        final double rank = Math.nextAfter(percentile, Double.NEGATIVE_INFINITY) * count / PERCENT;
        final long wanted = Math.max(1, (long) Math.ceil(rank));
        long seen = 0;
        for (int page = 0; page < PAGES; page++) {
            if (placeOf[page] == NONE) {
                continue;
            }
            final long[] counts = pages[placeOf[page] - 1];
            for (int at = 0; at < counts.length; at++) {
                seen += counts[at];
                if (seen >= wanted) {
                    return greatest(page << PAGE_BITS | at);
                }
            }
        }
        return 0;
    }

    /** The greatest value of the bucket in which the greatest one lies, ns; 0 if nothing was counted. */
    long maxNs() {
        return count == 0 ? 0 : greatest(bucket(maxNs));
    }

    /** Gives the pages back; nothing is counted afterwards. */
    void close() {
        while (taken > 0) {
            spare.give(pages[--taken]);
            pages[taken] = null;
        }
        Arrays.fill(placeOf, (byte) NONE);
        count = 0;
        maxNs = 0;
    }

    private static int bucket(final long ns) {
        final int doubling = Long.SIZE - 1 - PART_BITS - Long.numberOfLeadingZeros(ns | PART_MASK);
        return (doubling << PART_BITS) + (int) (ns >>> doubling);
    }

    private static long greatest(final int bucket) {
        final int doubling = Math.max(0, (bucket >> PART_BITS) - 1);
        final long part = bucket - (doubling << PART_BITS);
        return (part + 1 << doubling) - 1;
    }
}
