/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Utilisation;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.Node;
import dev.gpuseg.analysis.io.NodeReader;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Reads what random task sets shall look like: a YAML or JSON mapping. What it leaves out is as published. */
public final class ExperimentReader {
    private static final int MAX_BYTES = 1 << 16;
    private static final int CPUS_MAX = 1024;
    private static final int GPUS_MAX = 16;
    private static final Map<String, String> KEYS = new LinkedHashMap<>();

    static {
        KEYS.put("variant", "as-coded for the sets of the published program, as-published for those of its text");
        KEYS.put("utilisation", "how utilisations are drawn: uunifast or drs");
        KEYS.put("max_utilisation", "largest utilisation of a task, with drs");
        KEYS.put("cpus", "number of cores, 1.." + CPUS_MAX);
        KEYS.put("tasks", "number of tasks of the whole set, 1..99, assigned to cores by worst fit");
        KEYS.put("tasks_per_cpu", "A..B, number of tasks of each core");
        KEYS.put("cpu_utilisation", "A..B, utilisation of each core");
        KEYS.put("gpu_ratio", "A..B, share of the tasks that use the GPU, 0..1");
        KEYS.put("period_ms", "A..B, periods in whole milliseconds");
        KEYS.put("gpu_segments", "A..B, number of GPU segments of a task");
        KEYS.put("gpu_to_cpu", "A..B, GPU time divided by CPU time (G / C) of a task that uses the GPU");
        KEYS.put("host_ratio", "A..B, host part of a segment divided by the whole segment, 0..1");
        KEYS.put("best_effort", "share of the tasks that are best effort, 0..1");
        KEYS.put("gpus", "number of GPUs, 1.." + GPUS_MAX);
        KEYS.put("epsilon", "delay of one runlist update, such as 1ms");
        KEYS.put("mode", "what a thread does while the GPU works: suspend or busy");
    }

    private ExperimentReader() {
    }

    /** The lines of a help text about the keys. */
    public static List<String> help() {
        return KEYS.entrySet().stream().map(key -> "  " + key.getKey() + ": " + key.getValue() + ".").toList();
    }

    /**
     * Reads a file.
     *
     * @param file YAML or JSON
     * @return the experiment
     * @throws InvalidFileException     if it cannot be read, naming line, key, value and what to write
     * @throws IllegalArgumentException if the numbers do not fit together
     */
    public static Experiment read(final Path file) throws IOException {
        final Node root = new NodeReader("experiment", MAX_BYTES, "give one file each").read(file)
            .requireMapping(KEYS.keySet(), "{cpus: 4, gpu_ratio: 0.4..0.6}");
        final Node variant = root.get("variant");
        final Experiment base = Experiment.published(variant == null ? Variant.AS_CODED
            : choose(variant, Variant.values()));
        final Node utilisation = root.get("utilisation");
        final Node epsilon = root.get("epsilon");
        final Node mode = root.get("mode");
        final Gpu gpu = epsilon == null ? base.gpu() : base.gpu().withEpsilonNs(epsilon.durationNs());
        return new Experiment(base.variant(), utilisation == null ? base.utilisation()
            : choose(utilisation, Utilisation.values()), integer(root, "cpus", CPUS_MAX, base.cpus()),
            integer(root, "tasks", Task.MAX_PRIORITY, 0), range(root, "tasks_per_cpu", base.tasksPerCpu()),
            range(root, "cpu_utilisation", base.cpuUtilisation()),
            number(root, "max_utilisation", base.maxUtilisation()), range(root, "gpu_ratio", base.gpuRatio()),
            range(root, "period_ms", base.periodMs()), range(root, "gpu_segments", base.gpuSegments()),
            range(root, "gpu_to_cpu", base.gpuToCpu()), range(root, "host_ratio", base.hostToGpu()),
            number(root, "best_effort", 0), integer(root, "gpus", GPUS_MAX, 1), gpu,
            mode == null ? base.mode() : choose(mode, WaitMode.values()));
    }

    private static int integer(final Node root, final String key, final int most, final int otherwise)
        throws InvalidFileException {
        final Node value = root.get(key);
        return value == null ? otherwise : value.integer(1, most);
    }

    private static double number(final Node root, final String key, final double otherwise)
        throws InvalidFileException {
        final Node value = root.get(key);
        if (value == null) {
            return otherwise;
        }
        final Range range = range(root, key, null);
        if (range.least() != range.most()) {
            throw value.refuse("is " + value.show() + "; write one number");
        }
        return range.least();
    }

    private static Range range(final Node root, final String key, final Range otherwise) throws InvalidFileException {
        final Node value = root.get(key);
        if (value == null) {
            return otherwise;
        }
        try {
            return Range.parse(value.word());
        } catch (final IllegalArgumentException e) {
            throw value.refuse("is " + value.show() + "; " + e.getMessage().replaceFirst("^[^;]*; ", ""));
        }
    }

    private static <E extends Enum<E>> E choose(final Node value, final E[] values) throws InvalidFileException {
        final List<String> words = Arrays.stream(values).map(ExperimentReader::word).toList();
        return values[words.indexOf(value.oneOf(words))];
    }

    private static String word(final Enum<?> value) {
        return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
