/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Utilisation;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.generate.TaskSetFiles;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** {@code gpuseg generate}: random task sets, the published experiment by default. */
@Command(name = "generate", mixinStandardHelpOptions = true,
    description = {"Draw random task sets, by default of the published experiment (GCAPS, ECRTS 2024, Table 3).",
        "Set K of a seed is always the same; --first K --count 1 draws it alone.",
        "Exit status: 0 done, 1 failure, 2 wrong use."})
final class GenerateCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Option(names = "--count", paramLabel = "N", defaultValue = "1",
        description = "Number of task sets, 1..100000000 (default: ${DEFAULT-VALUE}).")
    private long count;

    @Option(names = "--first", paramLabel = "K", defaultValue = "0",
        description = "Number of the first set, 0 or more (default: ${DEFAULT-VALUE}).")
    private long first;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--format", paramLabel = "F",
        description = "Output format: yaml, json or jsonl (default: yaml for one set, else jsonl).")
    private String format;

    @Option(names = "--out", paramLabel = "FILE", description = "Write to this file (default: standard output).")
    private Path out;

    @Option(names = "--variant", paramLabel = "V", defaultValue = "as-coded",
        description = "as-coded for the sets of the published program, as-published for those of its text (default: "
            + "${DEFAULT-VALUE}).")
    private String variant;

    @Option(names = "--utilisation", paramLabel = "U", defaultValue = "uunifast",
        description = "How utilisations are drawn: uunifast or drs (default: ${DEFAULT-VALUE}).")
    private String utilisation;

    @Option(names = "--max-utilisation", paramLabel = "U", defaultValue = "1",
        description = "Largest utilisation of a task, with drs (default: ${DEFAULT-VALUE}).")
    private double maxUtilisation;

    @Option(names = "--cpus", paramLabel = "N", description = "Number of cores.")
    private Integer cpus;

    @Option(names = "--tasks", paramLabel = "N",
        description = "Number of tasks of the whole set, assigned to cores by worst fit.")
    private Integer tasks;

    @Option(names = "--tasks-per-cpu", paramLabel = "A..B", description = "Number of tasks of each core.")
    private String tasksPerCpu;

    @Option(names = "--cpu-utilisation", paramLabel = "A..B", description = "Utilisation of each core.")
    private String cpuUtilisation;

    @Option(names = "--gpu-ratio", paramLabel = "A..B", description = "Share of the tasks that use the GPU, 0..1.")
    private String gpuRatio;

    @Option(names = "--period-ms", paramLabel = "A..B", description = "Periods, in whole milliseconds.")
    private String periodMs;

    @Option(names = "--gpu-segments", paramLabel = "A..B", description = "Number of GPU segments of a task.")
    private String gpuSegments;

    @Option(names = "--gpu-to-cpu", paramLabel = "A..B",
        description = "GPU time divided by CPU time (G / C) of a task that uses the GPU.")
    private String gpuToCpu;

    @Option(names = "--host-ratio", paramLabel = "A..B",
        description = "Host part of a segment divided by the whole segment, 0..1.")
    private String hostToGpu;

    @Option(names = "--best-effort", paramLabel = "R", description = "Share of the tasks that are best effort, 0..1.")
    private Double bestEffort;

    @Option(names = "--gpus", paramLabel = "N", description = "Number of GPUs.")
    private Integer gpus;

    @Option(names = "--epsilon", paramLabel = "D", description = "Delay of one runlist update, such as 1ms.")
    private String epsilon;

    @Option(names = "--mode", paramLabel = "M",
        description = "What a thread does while the GPU works: suspend or busy.")
    private String mode;

    @Override
    public Integer call() throws IOException {
        final TaskSetGenerator generator;
        final TaskSetFiles.Format chosen;
        try {
            generator = new TaskSetGenerator(experiment());
            chosen = format == null ? count == 1 ? TaskSetFiles.Format.YAML : TaskSetFiles.Format.JSONL
                : choose("--format", format, TaskSetFiles.Format.values());
            if (count < 1 || count > 100_000_000) {
                throw new IllegalArgumentException("--count is " + count + "; it must be 1..100000000");
            }
            if (first < 0) {
                throw new IllegalArgumentException("--first is " + first + "; it must be 0 or more");
            }
            if (count > 1 && chosen != TaskSetFiles.Format.JSONL) {
                throw new IllegalArgumentException("--format is " + format + " but --count is " + count
                    + "; several sets need --format jsonl");
            }
            // a first set tells whether the numbers fit together
            generator.generate(seed, 0, first);
        } catch (final IllegalArgumentException e) {
            spec.commandLine().getErr().println("generate: " + e.getMessage());
            return 2;
        }
        if (out == null) {
            final Writer writer = spec.commandLine().getOut();
            write(generator, chosen, writer);
            writer.flush();
        } else {
            ResultFile.writeText(out, writer -> write(generator, chosen, writer));
        }
        return 0;
    }

    private void write(final TaskSetGenerator generator, final TaskSetFiles.Format chosen, final Writer writer)
        throws IOException {
        for (long k = first; k < first + count; k++) {
            TaskSetFiles.write(generator.generate(seed, 0, k), chosen, writer);
        }
    }

    private Experiment experiment() {
        final Experiment base = Experiment.published(choose("--variant", variant, Variant.values()));
        final Gpu gpu = epsilon == null ? base.gpu() : base.gpu().withEpsilonNs(epsilonNs());
        return new Experiment(base.variant(), choose("--utilisation", utilisation, Utilisation.values()),
            cpus == null ? base.cpus() : cpus, tasks == null ? 0 : tasks, range(tasksPerCpu, base.tasksPerCpu()),
            range(cpuUtilisation, base.cpuUtilisation()), maxUtilisation, range(gpuRatio, base.gpuRatio()),
            range(periodMs, base.periodMs()), range(gpuSegments, base.gpuSegments()), range(gpuToCpu, base.gpuToCpu()),
            range(hostToGpu, base.hostToGpu()), bestEffort == null ? 0 : bestEffort, gpus == null ? 1 : gpus, gpu,
            mode == null ? base.mode() : choose("--mode", mode, WaitMode.values()));
    }

    private long epsilonNs() {
        try {
            return Durations.parse(epsilon);
        } catch (final IllegalArgumentException e) {
            throw new IllegalArgumentException("--epsilon " + e.getMessage(), e);
        }
    }

    private static Range range(final String text, final Range otherwise) {
        return text == null ? otherwise : Range.parse(text);
    }

    private static <E extends Enum<E>> E choose(final String option, final String text, final E[] values) {
        final StringBuilder known = new StringBuilder();
        for (final E value : values) {
            final String word = value.name().toLowerCase(Locale.ROOT).replace('_', '-');
            if (word.equals(text)) {
                return value;
            }
            known.append(known.length() == 0 ? "" : ", ").append(word);
        }
        throw new IllegalArgumentException(option + " is '" + text + "'; it must be one of " + known);
    }
}
