/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.mechanisms.MachineFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * Maps RM's number of a GPU to its index. RM numbers a GPU by its PCI address: {@code domain << 16 | bus << 8 |
 * device}; the index counts GPUs in the order of their addresses, as nvidia-smi does. Immutable.
 */
final class GpuIndex {
    static final int UNKNOWN = -1;
    /** Property: directory to read in place of the driver's, for tests. */
    static final String GPUS_PROPERTY = "gpuseg.nvidia.gpus";
    private static final String GPUS = "/proc/driver/nvidia/gpus";
    private static final String MINOR = "Device Minor:";

    private final int[] ids;

    GpuIndex(final List<Integer> sortedIds) {
        ids = sortedIds.stream().mapToInt(Integer::intValue).toArray();
    }

    /**
     * The GPUs of this machine; empty without NVIDIA's driver. In a container the driver may list GPUs whose device
     * nodes are missing. CUDA does not count those, so this class does not either.
     */
    static GpuIndex ofThisMachine() {
        return read(directory(), MachineFiles.at("/dev"));
    }

    /** Where the driver lists its GPUs, or what stands for it in a test. */
    static Path directory() {
        return Path.of(System.getProperty(GPUS_PROPERTY, MachineFiles.at(GPUS).toString()));
    }

    static GpuIndex read(final Path gpus, final Path devices) {
        final List<Integer> listed = new ArrayList<>();
        final List<Integer> usable = new ArrayList<>();
        if (Files.isDirectory(gpus)) {
            try (Stream<Path> list = Files.list(gpus)) {
                list.forEach(p -> {
                    final int id = parse(p.getFileName().toString());
                    if (id != UNKNOWN) {
                        listed.add(id);
                        if (hasNode(p.resolve("information"), devices)) {
                            usable.add(id);
                        }
                    }
                });
            } catch (final IOException e) {
                return new GpuIndex(List.of());   // then a single GPU is assumed, see of()
            }
        }
        final List<Integer> found = usable.isEmpty() ? listed : usable;
        Collections.sort(found);
        return new GpuIndex(found);
    }

    /** True also if the driver does not say which node it is. */
    private static boolean hasNode(final Path information, final Path devices) {
        try {
            for (final String line : BoundedFile.lines(information, StandardCharsets.ISO_8859_1)) {
                if (line.startsWith(MINOR)) {
                    return Files.exists(devices.resolve("nvidia" + line.substring(MINOR.length()).strip()));
                }
            }
            return true;
        } catch (final IOException e) {
            return true;
        }
    }

    /** RM's number of an address such as "0000:3b:00.0"; {@link #UNKNOWN} for another form. */
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

    /** Index from 0, {@link #UNKNOWN} for a GPU that is not listed. If none is listed, there is one GPU. */
    int of(final int gpuId) {
        if (ids.length == 0) {
            return 0;
        }
        int index = 0;
        while (index < ids.length && ids[index] != gpuId) {
            index++;
        }
        return index < ids.length ? index : UNKNOWN;
    }

    /** As NVIDIA's tools write addresses; empty for a GPU that is not listed. */
    String address(final int index) {
        return index < 0 || index >= ids.length ? "" : String.format(Locale.ROOT, "%08X:%02X:%02X.0", ids[index] >>> 16,
            ids[index] >>> 8 & 0xff, ids[index] & 0xff);
    }

    int count() {
        return ids.length;
    }
}
