/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.CsvTable;
import dev.gpuseg.analysis.io.InvalidFileException;
import java.io.IOException;
import java.math.BigInteger;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Carries times of a GPU's clock to CLOCK_MONOTONIC, by readings of both: CLOCK_MONOTONIC, the GPU's clock,
 * CLOCK_MONOTONIC again. The GPU's clock was read at some instant between the two; the middle is taken. Between two
 * neighbouring readings the clocks are taken to run at a constant ratio, so their offset is interpolated; times outside
 * all readings are refused, not extrapolated. Whole ns throughout. Immutable and thread-safe.
 *
 * <h2>Error</h2>
 * {@link #errorNs} is half of the longest interval between two readings of CLOCK_MONOTONIC, plus, from three readings
 * on, the farthest that a reading lies from the line through its neighbours: what the ratio was seen to vary. With two
 * readings that variation is not seen and not in the bound. The resolution of the GPU's clock comes on top.
 */
public final class GpuClock {
    private static final List<String> COLUMNS = List.of("before_ns", "gpu_ns", "after_ns");

    /**
     * One reading, ns.
     *
     * @param beforeNs CLOCK_MONOTONIC
     * @param gpuNs    the GPU's clock
     * @param afterNs  CLOCK_MONOTONIC, not before {@code beforeNs}
     */
    public record Reading(long beforeNs, long gpuNs, long afterNs) {
        long middleNs() {
            return beforeNs + (afterNs - beforeNs) / 2;
        }

        long halfNs() {
            return (afterNs - beforeNs + 1) / 2;
        }
    }

    private final List<Reading> readings;
    private final long errorNs;

    /**
     * Takes readings in order of time.
     *
     * @param readings two or more
     * @throws IllegalArgumentException if they are fewer, or one contradicts another
     */
    public GpuClock(final List<Reading> readings) {
        if (readings.size() < 2) {
            throw new IllegalArgumentException("GPU clock: there are " + readings.size()
                + " readings; give two or more, before and after what is to be placed");
        }
        long half = 0;
        for (int i = 0; i < readings.size(); i++) {
            final Reading r = readings.get(i);
            if (r.afterNs() < r.beforeNs()) {
                throw new IllegalArgumentException("GPU clock: reading " + (i + 1) + " has after_ns " + r.afterNs()
                    + " before before_ns " + r.beforeNs() + "; write before_ns, gpu_ns, after_ns");
            }
            if (i > 0 && (r.gpuNs() <= readings.get(i - 1).gpuNs() || r.beforeNs() < readings.get(i - 1).afterNs())) {
                throw new IllegalArgumentException("GPU clock: reading " + (i + 1)
                    + " is not later than the one before, by both clocks; was the GPU reset? Use readings of one run");
            }
            half = Math.max(half, r.halfNs());
        }
        this.readings = List.copyOf(readings);
        long variation = 0;
        for (int i = 1; i + 1 < readings.size(); i++) {
            variation = Math.max(variation, Math.abs(readings.get(i).middleNs()
                - between(readings.get(i - 1), readings.get(i + 1), readings.get(i).gpuNs())));
        }
        errorNs = Math.addExact(half, variation);
    }

    /**
     * Reads a table: a line {@code before_ns,gpu_ns,after_ns}, then one reading per line.
     *
     * @param file CSV
     * @return the clock
     * @throws InvalidFileException     if it is no such table: file, line, remedy
     * @throws IOException              if it cannot be read
     * @throws IllegalArgumentException if the readings contradict each other
     */
    public static GpuClock read(final Path file) throws IOException {
        final List<Reading> readings = new ArrayList<>();
        for (final CsvTable.Row row : CsvTable.read(file, COLUMNS).rows()) {
            readings.add(new Reading(number(row, 0), number(row, 1), number(row, 2)));
        }
        return new GpuClock(readings);
    }

    static long number(final CsvTable.Row row, final int column) throws InvalidFileException {
        final String text = row.cells().get(column);
        try {
            return Long.parseLong(text);
        } catch (final NumberFormatException e) {
            throw row.refusal("\"" + text + "\" is no whole number of ns; write one");
        }
    }

    /** CLOCK_MONOTONIC at a time of the GPU's clock; the offset of the two is interpolated. */
    private static long between(final Reading from, final Reading to, final long gpuNs) {
        final long offsetNs = from.middleNs() - from.gpuNs();
        final long changeNs = to.middleNs() - to.gpuNs() - offsetNs;
        return gpuNs + offsetNs + BigInteger.valueOf(gpuNs - from.gpuNs()).multiply(BigInteger.valueOf(changeNs))
            .divide(BigInteger.valueOf(to.gpuNs() - from.gpuNs())).longValueExact();
    }

    /**
     * Converts.
     *
     * @param gpuNs a time of the GPU's clock
     * @return ns of CLOCK_MONOTONIC, within {@link #errorNs}
     * @throws IllegalArgumentException if it lies outside the readings
     */
    public long monotonicNs(final long gpuNs) {
        final long firstNs = readings.get(0).gpuNs();
        final long lastNs = readings.get(readings.size() - 1).gpuNs();
        if (gpuNs < firstNs || gpuNs > lastNs) {
            throw new IllegalArgumentException("GPU time " + gpuNs + " ns lies outside the readings " + firstNs + ".."
                + lastNs + " ns; read the clocks before and after the run");
        }
        int low = 0;
        int high = readings.size() - 2;
        while (low < high) {
            final int middle = (low + high + 1) >>> 1;
            if (readings.get(middle).gpuNs() <= gpuNs) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        return between(readings.get(low), readings.get(low + 1), gpuNs);
    }

    /** How far a converted time may be off, ns; see the class's description. */
    public long errorNs() {
        return errorNs;
    }
}
