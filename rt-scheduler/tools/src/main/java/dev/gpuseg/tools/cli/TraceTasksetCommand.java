/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.TaskSetDrawing;
import dev.gpuseg.tools.trace.TraceBuilder;
import java.io.IOException;
import java.nio.file.Path;
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
        + "keep the set from being admitted.")
final class TraceTasksetCommand implements Callable<Integer> {
    private static final int MARGIN_MAX = 1000;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "RECORDING", description = "Recording, or directory of a journal.")
    private Path file;

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
        if (margin < 0 || margin > MARGIN_MAX) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--margin is " + margin + "; use 0..1000");
        }
        if (percentile < 1 || percentile > TaskSetDrawing.LONGEST) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--percentile is " + percentile
                + "; use 1..100");
        }
        final String name = file.getFileName().toString().replaceFirst("\\.[^.]*$", "");
        final TaskSetDrawing.Drawing drawing = TaskSetDrawing.draw(TraceBuilder.read(Source.open(file)),
            new TaskSetDrawing.Wish(name, margin, percentile, 0));
        final String yaml = drawing.yaml();
        drawing.warnings().forEach(warning -> spec.commandLine().getErr().println("gpuseg: warning: " + warning));
        if (out == null) {
            spec.commandLine().getOut().print(yaml);
            spec.commandLine().getOut().flush();
        } else {
            ResultFile.write(out, yaml);
            final int tasks = new TaskSetReader().read(out).tasks().size();   // what we wrote must be readable
            spec.commandLine().getOut().println(out + ": " + tasks + " tasks, margin " + margin + " %; next: gpuseg "
                + "analyze " + out);
        }
        return ExitCode.OK;
    }
}
