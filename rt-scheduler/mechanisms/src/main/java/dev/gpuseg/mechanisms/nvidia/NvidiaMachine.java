/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.mechanisms.MachineFiles;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What NVIDIA's driver and the board say of this machine, in files that every user may read. Asks no driver. */
public final class NvidiaMachine {
    private static final String DRIVER = "/proc/driver/nvidia";
    private static final String BOARD = "/proc/device-tree/model";
    private static final String MODEL = "Model:";
    private static final String FIRMWARE = "GPU Firmware:";
    private static final String NO_FIRMWARE = "N/A";
    private static final Pattern VERSION = Pattern.compile("(?<![\\w.])\\d{3}\\.\\d+(\\.\\d+)?(?![\\w.])");

    /** Whether the firmware of the GPU's system processor runs. */
    enum Firmware {
        RUNS, NONE, UNKNOWN
    }

    private NvidiaMachine() {
    }

    /** The line that the driver says of itself; empty without it. */
    static String driverLine() {
        return read(MachineFiles.at(DRIVER + "/version")).lines().findFirst().orElse("").replaceAll("\\s+", " ")
            .strip();
    }

    /** Such as 580.159.04; empty without a driver. */
    public static String driverVersion() {
        return version(driverLine());
    }

    static String version(final String line) {
        final Matcher version = VERSION.matcher(line);
        return version.find() ? version.group() : "";
    }

    /** The models that the driver lists, in the order of their addresses. */
    public static List<String> models() {
        return models(GpuIndex.directory());
    }

    /** The models of all GPUs, each once, as profiles name them; empty if the driver lists none. */
    public static String modelNames() {
        return modelNames(GpuIndex.directory());
    }

    static String modelNames(final Path directory) {
        return models(directory).stream().distinct().sorted().collect(Collectors.joining(", "));
    }

    static List<String> models(final Path directory) {
        return gpus(directory).stream().map(gpu -> valueOf(gpu, MODEL)).toList();
    }

    /** The board of a device tree, such as a Jetson; empty on others. */
    public static String board() {
        return read(MachineFiles.at(BOARD)).replace("\0", "").strip();
    }

    /**
     * How many MIG instances a GPU is divided into.
     *
     * @param gpu its index
     * @return 0 where MIG is off, or the GPU has none
     */
    static int migInstances(final int gpu) {
        return (int) list(MachineFiles.at(DRIVER + "/capabilities/gpu" + gpu + "/mig")).stream()
            .filter(p -> p.getFileName().toString().matches("gi\\d+")).count();
    }

    /** MIG instances of all GPUs, 0 where it is off. */
    public static int migInstances() {
        int found = 0;
        for (int gpu = 0; gpu < models().size(); gpu++) {
            found += migInstances(gpu);
        }
        return found;
    }

    /** The driver's directories of GPUs, sorted; empty if there are none. */
    static List<Path> gpus(final Path directory) {
        return list(directory);
    }

    static Firmware firmware(final Path gpu) {
        final String value = valueOf(gpu, FIRMWARE);
        return value.isEmpty() ? Firmware.UNKNOWN : value.equals(NO_FIRMWARE) ? Firmware.NONE : Firmware.RUNS;
    }

    private static String valueOf(final Path gpu, final String key) {
        return read(gpu.resolve("information")).lines().filter(line -> line.startsWith(key)).findFirst()
            .map(line -> line.substring(key.length()).strip()).orElse("");
    }

    private static List<Path> list(final Path directory) {
        final List<Path> found = new ArrayList<>();
        try (Stream<Path> entries = Files.isDirectory(directory) ? Files.list(directory).sorted() : Stream.empty()) {
            entries.forEach(found::add);
        } catch (final IOException e) {
            found.clear();   // as if there were none: that is a finding, not an error
        }
        return found;
    }

    static String read(final Path path) {
        try {
            return BoundedFile.text(path, StandardCharsets.ISO_8859_1);
        } catch (final IOException e) {
            return "";   // its absence is a finding, not an error
        }
    }
}
