/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceStats;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Figures of a recording. */
@Command(name = "stats", mixinStandardHelpOptions = true,
    description = "Show figures per task and policy: jobs, response times, waits, preemptions, deadline misses, share "
        + "of the GPU.")
final class TraceStatsCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "RECORDING", description = "Recording, or directory of a journal.")
    private Path file;

    @Option(names = "--taskset", paramLabel = "FILE",
        description = "Task set in YAML or JSON: show reaction time and data age of its chains too.")
    private Path taskSet;

    @Option(names = "--json", description = "Print JSON; times are in nanoseconds.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
        final TaskSet set;
        try {
            set = taskSet == null ? null : new TaskSetReader().read(taskSet);
        } catch (final InvalidFileException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        final Trace trace = TraceBuilder.read(Source.open(file));
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(new ObjectMapper().writerWithDefaultPrettyPrinter()
                .writeValueAsString(TraceStats.json(trace, set)));
        } else {
            out.print(TraceStats.text(trace, set));
        }
        out.flush();
        return ExitCode.OK;
    }
}
