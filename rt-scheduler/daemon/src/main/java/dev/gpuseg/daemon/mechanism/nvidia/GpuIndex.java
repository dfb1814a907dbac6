/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.nvidia;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;

/**
 * Which GPU an RM number means. RM numbers a GPU by its place on the PCI bus: {@code domain << 16 | bus << 8 | device};
 * the index counts GPUs in the order of that place, as nvidia-smi does. Immutable.
 */
final class GpuIndex {
    static final int UNKNOWN = -1;
    private static final Path GPUS = Path.of("/proc/driver/nvidia/gpus");

    private final List<Integer> ids;

    GpuIndex(final List<Integer> sortedIds) {
        ids = List.copyOf(sortedIds);
    }

    /** Of this machine; empty without NVIDIA's driver. */
    static GpuIndex ofThisMachine() {
        final List<Integer> found = new ArrayList<>();
        if (Files.isDirectory(GPUS)) {
            try (Stream<Path> list = Files.list(GPUS)) {
                list.forEach(p -> found.add(parse(p.getFileName().toString())));
            } catch (final IOException e) {
                return new GpuIndex(List.of());   // then a single GPU is assumed, see of()
            }
        }
        found.removeIf(id -> id == UNKNOWN);
        Collections.sort(found);
        return new GpuIndex(found);
    }

    /** "0000:3b:00.0" as RM numbers it, {@link #UNKNOWN} for another form. */
    static int parse(final String address) {
        final String[] parts = address.split("[:.]");
        if (parts.length != 4) {
            return UNKNOWN;
        }
        try {
            return Integer.parseInt(parts[0], 16) << 16 | Integer.parseInt(parts[1], 16) << 8
                | Integer.parseInt(parts[2], 16);
        } catch (final NumberFormatException e) {
            return UNKNOWN;
        }
    }

    /** Index from 0, {@link #UNKNOWN} for a GPU that is not listed. Where none is listed there is one GPU. */
    int of(final int gpuId) {
        return ids.isEmpty() ? 0 : ids.indexOf(gpuId);
    }

    int count() {
        return ids.size();
    }
}
