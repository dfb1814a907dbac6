/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Arrays;

/**
 * How long begins waited for the GPU: by how much each response exceeds the shortest one of the same kernel alone. All
 * that came between is in it: switches, turns of others, and what late calls took. Immutable. Times in ns.
 */
public final class BeginWaits {
    /** No failure in n trials: at most 3/n, with a confidence of 95 %. Per cent. */
    private static final double RULE_OF_THREE = 300;
    private static final int PERMILLE = 1000;
    private static final int P50 = 500;
    private static final int P95 = 950;
    private static final int P99 = 990;
    private static final int P999 = 999;

    private final long[] sorted;

    /**
     * From what was measured.
     *
     * @param aloneNs   the shortest response of the kernel alone
     * @param responses of the same kernel, in any number of series, not all empty
     */
    public BeginWaits(final long aloneNs, final long[]... responses) {
        sorted = Arrays.stream(responses).flatMapToLong(Arrays::stream).map(ns -> Math.max(0, ns - aloneNs)).sorted()
            .toArray();
        if (sorted.length == 0) {
            throw new IllegalArgumentException("no wait was measured");
        }
    }

    /** How many waits. */
    public int count() {
        return sorted.length;
    }

    /** The longest. */
    public long longestNs() {
        return sorted[sorted.length - 1];
    }

    /** The wait that so many in a thousand do not exceed; 0..1000. */
    public long quantileNs(final int permille) {
        return sorted[(int) Math.max(0, ((long) sorted.length * permille + PERMILLE - 1) / PERMILLE - 1)];
    }

    /** How probable a longer wait is at most, with a confidence of 95 %, per cent. */
    public double longerPercent() {
        return Math.min(100, RULE_OF_THREE / sorted.length);
    }

    /** Writes count, quantiles and what the count can say. */
    public void describe(final ObjectNode into) {
        into.put("n", count()).put("p50", quantileNs(P50)).put("p95", quantileNs(P95)).put("p99", quantileNs(P99));
        if (count() >= PERMILLE) {
            into.put("p999", quantileNs(P999));
        }
        into.put("max", longestNs()).put("longer_percent_at_most", longerPercent()).put("confidence_percent", 95);
    }
}
