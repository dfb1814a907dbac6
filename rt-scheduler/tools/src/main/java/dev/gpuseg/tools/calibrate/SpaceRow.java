/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.IntegerMath;
import java.util.List;

/**
 * One kind of work in the reserve of a space, alone and beside one set of loads. Times in nanoseconds.
 *
 * <p>An execution counts from before the launch until the CPU sees the end. Samples in which the CPU was away are only
 * counted: another thread had it, or 50 us passed between two looks at the GPU.
 *
 * <p>In flight is what one load gave to the GPU at a time, one kernel, a copy of 64 MiB each way or 100 launches, from
 * before its first launch to its end, by events on the GPU, beside the other loads and the work. It gives no more
 * before that end. So whenever it were told to launch nothing, its part of the GPU would be idle within the longest of
 * these times. What it gave while another thread had its CPU is only counted.
 *
 * @param work     what ran in the reserve, as {@code gpuseg latency --work} takes it
 * @param loads    kinds of loads, one for each process
 * @param alone    the measurement without loads, as gpuseg-latency prints it
 * @param beside   the same beside them
 */
record SpaceRow(String work, List<String> loads, JsonNode alone, JsonNode beside) {
    private static final long PERMILLE = 1_000;
    private static final long PERCENT = 100;

    /**
     * Refuses what says nothing.
     *
     * @throws IllegalStateException if in more than half of the samples the CPU was away, or there are none
     */
    SpaceRow {
        for (final JsonNode measurement : List.of(alone, beside)) {
            final long kept = measurement.path("executions").asLong();
            final long away = measurement.path("cpu_taken").asLong();
            if (isBusy(measurement)) {
                throw new IllegalStateException("calibrate: the CPU was away in " + away + " of " + (kept + away)
                    + " executions of " + work + " (" + measurement.path("name").asText() + "), so they say nothing of "
                    + "the GPU; calibrate as root, on a machine that is idle");
            }
        }
        if (beside.path("batches").asLong() == 0) {
            throw new IllegalStateException("calibrate: beside " + work + " nothing of " + String.join(", ", loads)
                + " ended; give more --jobs");
        }
    }

    /** Whether the CPU was away in most executions. */
    static boolean isBusy(final JsonNode measurement) {
        final long kept = measurement.path("executions").asLong();
        return kept == 0 || kept < measurement.path("cpu_taken").asLong();
    }

    private static long execution(final JsonNode measurement, final String figure) {
        return measurement.path("execution").path(figure).asLong();
    }

    /** By how many permille of the shortest execution alone one beside the loads was longer; 0 if it was not. */
    private long longer(final long besideNs) {
        final long aloneNs = Math.max(1, execution(alone, "min_ns"));
        return Math.max(0, IntegerMath.ceilDiv(besideNs * PERMILLE, aloneNs) - PERMILLE);
    }

    /**
     * The longest execution beside the loads over the shortest alone: whatever was observed alone is declared, it is
     * no shorter than that.
     *
     * @return permille by which it is longer, from 0
     */
    long slowdownPermille() {
        return longer(execution(beside, "max_ns"));
    }

    /** The longest that the GPU had what a load gave it. */
    long inFlightNs() {
        return beside.path("in_flight").path("max_ns").asLong();
    }

    /** Writes the distributions. */
    void describe(final ObjectNode into) {
        into.put("work", work);
        final ArrayNode kinds = into.putArray("loads");
        loads.forEach(kinds::add);
        times(into.putObject("alone_ns"), alone, "executions", "execution");
        times(into.putObject("beside_ns"), beside, "executions", "execution");
        final JsonNode percentiles = beside.path("execution").path("percentiles");
        into.putObject("slowdown_percent").put("n", beside.path("executions").asLong())
            .put("min", percent(execution(beside, "min_ns"))).put("p50", percent(percentiles.path("50").asLong()))
            .put("p99", percent(percentiles.path("99").asLong())).put("max", percent(execution(beside, "max_ns")));
        into.put("cpu_away_alone", alone.path("cpu_taken").asLong())
            .put("cpu_away_beside", beside.path("cpu_taken").asLong());
        times(into.putObject("in_flight_ns"), beside, "batches", "in_flight");
        into.put("cpu_away_in_flight", beside.path("batches_cpu_taken").asLong());
    }

    private double percent(final long besideNs) {
        return longer(besideNs) * PERCENT / (double) PERMILLE;
    }

    private static void times(final ObjectNode into, final JsonNode from, final String count, final String name) {
        final JsonNode percentiles = from.path(name).path("percentiles");
        into.put("n", from.path(count).asLong()).put("min", from.path(name).path("min_ns").asLong())
            .put("p50", percentiles.path("50").asLong()).put("p99", percentiles.path("99").asLong())
            .put("max", from.path(name).path("max_ns").asLong());
    }
}
