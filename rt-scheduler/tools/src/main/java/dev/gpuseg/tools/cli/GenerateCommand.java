/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.ExperimentReader;
import dev.gpuseg.analysis.generate.TaskSetFiles;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultFile;
import java.io.IOException;
import java.io.Writer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code gpuseg generate}: random task sets, the published experiment by default. */
@Command(name = "generate", mixinStandardHelpOptions = true,
    modelTransformer = GenerateCommand.Keys.class,
    description = {"Draw random task sets, by default of the published experiment (GCAPS, ECRTS 2024, Table 3).",
        "Set K of a seed is always the same; --first K --count 1 draws it alone.",
        "Exit status: 0 done, 1 failure, 2 wrong use."})
final class GenerateCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..1", paramLabel = "EXPERIMENT",
        description = "What the sets look like, in YAML or JSON; the keys are explained below (default: as published).")
    private Path file;

    @Option(names = "--count", paramLabel = "N", defaultValue = "1",
        description = "Number of task sets, 1..100000000 (default: ${DEFAULT-VALUE}).")
    private long count;

    @Option(names = "--first", paramLabel = "K", defaultValue = "0",
        description = "Number of the first set, 0 or more (default: ${DEFAULT-VALUE}).")
    private long first;

    @Option(names = "--seed", paramLabel = "N", defaultValue = "1",
        description = "Seed of the random numbers (default: ${DEFAULT-VALUE}).")
    private long seed;

    @Option(names = "--out", paramLabel = "FILE",
        description = "Write to this file (default: standard output). One set is YAML, or JSON in a file that ends "
            + "in .json; "
            + "several are one JSON object a line, as is one in a file that ends in .jsonl.")
    private Path out;

    @Override
    public Integer call() throws IOException {
        final TaskSetGenerator generator;
        final TaskSetFiles.Format chosen;
        try {
            generator = new TaskSetGenerator(file == null ? Experiment.published(Experiment.Variant.AS_CODED)
                : ExperimentReader.read(file));
            chosen = count > 1 || named(".jsonl") ? TaskSetFiles.Format.JSONL
                : named(".json") ? TaskSetFiles.Format.JSON : TaskSetFiles.Format.YAML;
            if (count < 1 || count > 100_000_000) {
                throw new IllegalArgumentException("--count is " + count + "; it must be 1..100000000");
            }
            if (first < 0) {
                throw new IllegalArgumentException("--first is " + first + "; it must be 0 or more");
            }
            // a first set tells whether the numbers fit together
            generator.generate(seed, 0, first);
        } catch (final InvalidFileException | IllegalArgumentException e) {
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

    private boolean named(final String ending) {
        return out != null && out.toString().endsWith(ending);
    }

    /** Lists the keys of the file at the end of the help. */
    static final class Keys implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec command) {
            final List<String> lines = new ArrayList<>(List.of("", "Keys of EXPERIMENT, all of them optional:"));
            lines.addAll(ExperimentReader.help());
            command.usageMessage().footer(lines.toArray(new String[0]));
            return command;
        }
    }
}
