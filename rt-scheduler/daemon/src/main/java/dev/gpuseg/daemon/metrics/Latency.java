/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import org.HdrHistogram.HistogramIterationValue;
import org.HdrHistogram.IntCountsHistogram;

/**
 * Durations, from 1 us (shorter ones count as that in percentiles) to an hour (longer ones count as an hour), within
 * 1 %; their greatest is kept exactly. At most 14 KB, less while nothing long was seen. Guarded by its owner.
 */
final class Latency {
    private static final long LOWEST_NS = 1_000;
    private static final long HIGHEST_NS = 3_600_000_000_000L;
    private static final int DIGITS = 2;
    /** Columns of a drawn histogram per doubling of the duration. */
    private static final int COLUMNS_PER_OCTAVE = 6;

    private final IntCountsHistogram histogram = new IntCountsHistogram(LOWEST_NS, 2 * LOWEST_NS, DIGITS);
    private long maxNs;
    private long lastNs;

    Latency() {
        histogram.setAutoResize(true);
    }

    /** Forgets all durations; the memory stays. */
    void clear() {
        histogram.reset();
        maxNs = 0;
        lastNs = 0;
    }

    void record(final long ns) {
        lastNs = Math.max(0, ns);
        maxNs = Math.max(maxNs, lastNs);
        histogram.recordValue(Math.max(LOWEST_NS, Math.min(lastNs, HIGHEST_NS)));
    }

    long count() {
        return histogram.getTotalCount();
    }

    long maxNs() {
        return maxNs;
    }

    long percentileNs(final double percentile) {
        return Math.min(maxNs, histogram.getValueAtPercentile(percentile));
    }

    /** Bytes that it takes now, about. */
    int bytes() {
        return histogram.getEstimatedFootprintInBytes();
    }

    void putInto(final ObjectNode parent, final String name, final boolean columns) {
        final ObjectNode node = parent.putObject(name);
        node.put("count", count());
        if (count() > 0) {
            node.put("last", lastNs);
            node.put("p50", percentileNs(50));
            node.put("p99", percentileNs(99));
            node.put("max", maxNs);
            if (columns) {
                columns(node.putArray("columns"));
            }
        }
    }

    /** Pairs of the number of a column and its count; column c holds durations of 1 us * 2^(c/6) and a sixth more. */
    private void columns(final ArrayNode into) {
        int column = -1;
        long inColumn = 0;
        for (final HistogramIterationValue value : histogram.recordedValues()) {
            final double us = (double) value.getValueIteratedTo() / LOWEST_NS;
            final int c = Math.max(0, (int) Math.floor(COLUMNS_PER_OCTAVE * Math.log(us) / Math.log(2)));
            if (c != column && inColumn > 0) {
                into.add(column).add(inColumn);
                inColumn = 0;
            }
            column = c;
            inColumn += value.getCountAddedInThisIterationStep();
        }
        if (inColumn > 0) {
            into.add(column).add(inColumn);
        }
    }
}
