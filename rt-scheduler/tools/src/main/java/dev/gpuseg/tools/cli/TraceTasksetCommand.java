/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.TaskSetDrawing;
import dev.gpuseg.tools.trace.TraceBuilder;
import java.io.IOException;
import java.nio.file.Files;
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
        + "analyze` reads it unchanged.")
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

    @Option(names = "--id", paramLabel = "ID", description = "Id of the task set (default: the recording's name).")
    private String id;

    @Override
    public Integer call() throws IOException {
        if (margin < 0 || margin > MARGIN_MAX) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--margin is " + margin + "; use 0..1000");
        }
        final String name = id != null ? id : file.getFileName().toString().replaceFirst("\\.[^.]*$", "");
        final String yaml = TaskSetDrawing.yaml(TraceBuilder.read(Source.open(file)), name, margin);
        if (out == null) {
            spec.commandLine().getOut().print(yaml);
            spec.commandLine().getOut().flush();
        } else {
            Files.writeString(out, yaml);
            final int tasks = new TaskSetReader().read(out).tasks().size();   // what we wrote must be readable
            spec.commandLine().getOut().println(out + ": " + tasks + " tasks, margin " + margin + " %; next: gpuseg "
                + "analyze " + out);
        }
        return ExitCode.OK;
    }
}
