/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.CsvTable;
import dev.gpuseg.analysis.io.InvalidFileException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** What another tool saw on the GPU, placed on CLOCK_MONOTONIC. */
public final class Kernels {
    private static final List<String> COLUMNS = List.of("gpu", "name", "start_gpu_ns", "end_gpu_ns");
    private static final int GPU_MAX = 255;

    record Kernel(int gpu, String name, long fromNs, long toNs) {
    }

    final List<Kernel> all;
    final long errorNs;

    private Kernels(final List<Kernel> all, final long errorNs) {
        this.all = all;
        this.errorNs = errorNs;
    }

    /**
     * Reads a table: a line {@code gpu,name,start_gpu_ns,end_gpu_ns}, then one kernel per line, in any order.
     *
     * @param file  CSV
     * @param clock of the GPU that ran them
     * @return the kernels in order of time
     * @throws InvalidFileException     if it is no such table: file, line, remedy
     * @throws IOException              if it cannot be read
     * @throws IllegalArgumentException if a time lies outside the clock's readings
     */
    public static Kernels read(final Path file, final GpuClock clock) throws IOException {
        final List<Kernel> all = new ArrayList<>();
        for (final CsvTable.Row row : CsvTable.read(file, COLUMNS).rows()) {
            final long gpu = GpuClock.number(row, 0);
            final String name = row.cells().get(1);
            final long startNs = GpuClock.number(row, 2);
            final long endNs = GpuClock.number(row, 3);
            if (gpu < 0 || gpu > GPU_MAX || endNs < startNs) {
                throw row.refusal("kernel \"" + name + "\" on GPU " + gpu + " from " + startNs + " to " + endNs
                    + " ns; the GPU must be 0.." + GPU_MAX + " and the end not before the start");
            }
            all.add(new Kernel((int) gpu, name, clock.monotonicNs(startNs), clock.monotonicNs(endNs)));
        }
        all.sort(Comparator.comparingLong(Kernel::fromNs));
        return new Kernels(all, clock.errorNs());
    }
}
