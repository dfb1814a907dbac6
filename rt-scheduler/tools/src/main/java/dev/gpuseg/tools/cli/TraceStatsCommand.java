/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.analysis.io.InvalidFileException;
import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.trace.ResponseCharts;
import dev.gpuseg.tools.trace.Source;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceBuilder;
import dev.gpuseg.tools.trace.TraceStats;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
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

    @Option(names = "--out", paramLabel = "FILE",
        description = "Write to this file instead of standard output. One that ends in .html or .svg draws the "
            + "response "
            + "times of each task, a colour for each policy: a histogram, and the share of jobs that were complete "
            + "within "
            + "a time.")
    private Path to;

    @Override
    public Integer call() throws IOException {
        final TaskSet set;
        try {
            set = taskSet == null ? null : new TaskSetReader().read(taskSet);
        } catch (final InvalidFileException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        if (json && to != null && to.toString().matches(".*\\.(html|svg)")) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--json is given and --out is " + to
                + ", a drawing; leave out --json, or name another file");
        }
        final Trace trace = TraceBuilder.read(Source.open(file));
        final String text = render(trace, set);
        final PrintWriter out = spec.commandLine().getOut();
        if (to == null) {
            out.print(text);
        } else {
            ResultFile.write(to, text);
            out.println(to + ": " + Files.size(to) + " bytes");
        }
        out.flush();
        return ExitCode.OK;
    }

    private String render(final Trace trace, final TaskSet set) throws IOException {
        final String name = to == null ? "" : to.toString();
        if (name.endsWith(".html")) {
            return ResponseCharts.html(trace);
        }
        if (name.endsWith(".svg")) {
            return ResponseCharts.svg(trace);
        }
        return json ? new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(
            TraceStats.json(trace, set)) + System.lineSeparator() : TraceStats.text(trace, set);
    }
}
