/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.io.ThreadConfiguration;
import dev.gpuseg.analysis.io.ThreadConfigurationWriter;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.TaskSetDrawing;
import dev.gpuseg.tools.trace.TraceBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** From what ran to what can be analysed. */
@Command(name = "taskset", mixinStandardHelpOptions = true,
    description = "Derive a task set from a recording: periods, segments, and measured maxima with a margin. `gpuseg "
        + "analyze` and `gpuseg run --taskset` read it unchanged. Declared periods are kept; warnings say what may "
        + "keep the set from being admitted. With a file of ROS 2's callback-isolated executor, also from a set "
        + "to its threads.")
final class TraceTasksetCommand implements Callable<Integer> {
    private static final int MARGIN_MAX = 1000;
    private static final byte[] ZIP = {'P', 'K'};

    @Spec
    private CommandSpec spec;

    @Parameters(index = "0", paramLabel = "RECORDING", description = "Recording, or directory of a journal; with "
        + "EXECUTOR also a task set.")
    private Path file;

    @Parameters(index = "1", arity = "0..1", paramLabel = "EXECUTOR",
        description = "YAML of the thread configurator of ROS 2's callback-isolated executor. From a recording: tasks "
            + "get core and priority of their callback group's thread. From a task set: this YAML is written with the "
            + "set's cores and priorities; all else stays as it is.")
    private Path threads;

    @Option(names = "--out", paramLabel = "FILE", description = "Write YAML to this file instead of standard output.")
    private Path out;

    @Option(names = "--margin", paramLabel = "PERCENT", defaultValue = "20",
        description = "Margin added to every measured time, percent, 0..1000 (default: ${DEFAULT-VALUE}).")
    private int margin;

    @Option(names = "--percentile", paramLabel = "N", defaultValue = "100",
        description = "Percentile of each measured time that counts, 1..100; 100 is the longest. Below 100 single "
            + "hiccups are left out, and the bounds do not cover them (default: ${DEFAULT-VALUE}).")
    private int percentile;

    @Override
    public Integer call() throws IOException {
        if (threads != null && isText(file)) {
            return fill();
        }
        if (margin < 0 || margin > MARGIN_MAX) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--margin is " + margin + "; use 0..1000");
        }
        if (percentile < 1 || percentile > TaskSetDrawing.LONGEST) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--percentile is " + percentile
                + "; use 1..100");
        }
        final String name = file.getFileName().toString().replaceFirst("\\.[^.]*$", "");
        final TaskSetDrawing.Wish wish = new TaskSetDrawing.Wish(name, margin, percentile, 0);
        final TaskSetDrawing.Drawing drawing;
        try {
            drawing = threads == null ? TaskSetDrawing.draw(TraceBuilder.read(Source.open(file)), wish)
                : TaskSetDrawing.draw(TraceBuilder.read(Source.open(file)), wish, ThreadConfiguration.read(threads));
        } catch (final InvalidFileException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        write(drawing.yaml(), drawing.warnings());
        if (out != null) {
            final int tasks = new TaskSetReader().read(out).tasks().size();   // what we wrote must be readable
            spec.commandLine().getOut().println(out + ": " + tasks + " tasks, margin " + margin + " %; next: gpuseg "
                + "analyze " + out);
        }
        return ExitCode.OK;
    }

    /** From a task set to the threads. */
    private Integer fill() throws IOException {
        for (final String name : List.of("--margin", "--percentile")) {
            if (spec.commandLine().getParseResult().hasMatchedOption(name)) {
                throw new CommandLine.ParameterException(spec.commandLine(), name + " is for recordings, and " + file
                    + " is a task set; leave it out");
            }
        }
        final ThreadConfigurationWriter.Filled filled;
        try {
            filled = ThreadConfigurationWriter.fill(new TaskSetReader().read(file), ThreadConfiguration.read(threads));
        } catch (final InvalidFileException | InvalidModelException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        write(filled.yaml(), filled.remarks());
        if (out != null) {
            spec.commandLine().getOut().println(out + ": " + filled.threads() + " threads have tasks of " + file + ", "
                + filled.changed() + " of them changed; all else is as in " + threads);
        }
        return ExitCode.OK;
    }

    private void write(final String yaml, final List<String> warnings) throws IOException {
        warnings.forEach(warning -> spec.commandLine().getErr().println("gpuseg: warning: " + warning));
        if (out == null) {
            spec.commandLine().getOut().print(yaml);
            spec.commandLine().getOut().flush();
        } else {
            ResultFile.write(out, yaml);
        }
    }

    /** A recording is a ZIP file, a journal a directory; what is neither can only be a task set. */
    private static boolean isText(final Path path) throws IOException {
        if (!Files.isRegularFile(path)) {
            return false;
        }
        try (InputStream in = Files.newInputStream(path)) {
            return !Arrays.equals(in.readNBytes(ZIP.length), ZIP);
        }
    }
}
