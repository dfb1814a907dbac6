/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.NativePrograms;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.IModelTransformer;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/**
 * Runs a CUDA program as a task. The C program {@code gpuseg-exec} does it, which the launchers start directly, because
 * a runtime of Java would take longer to start than it has to do. This class is its help, manual page and completion,
 * and passes the command line on where somebody starts it through Java.
 */
@Command(name = "exec", mixinStandardHelpOptions = true, modelTransformer = ExecCommand.FirstWordEndsOptions.class,
    description = "Run a CUDA program as it is as a task of the scheduler, with the processes that it starts. The "
        + "driver loads a library that begins a segment at the first launch and ends it when all work is done. "
        + "Without a daemon the program runs unmanaged, and one line says so; another one says at its end if no CUDA "
        + "was seen.",
    footer = {"", "Variables of the environment, for programs that need something else than the usual:",
        "  GPUSEG_EXEC_HOLD_OFF: launches closer than this time are one segment, 0..1h, or auto: learned from the "
            + "pauses "
            + "of a real-time program, 200us..1.6ms; with --budget 200us (default: auto).",
        "  GPUSEG_EXEC_SEGMENTS: what one segment is: auto, from a launch until all work is done; graph, the same, but "
            + "only launches of CUDA graphs begin one; process, from the first launch to the end of the process "
            + "(default: auto).",
        "  GPUSEG_EXEC_SLICE: best effort: longest segment, 0 for no limit (default: 500us where the daemon's "
            + "mechanism "
            + "can only wait for segments, else 0).",
        "  GPUSEG_EXEC_STREAMS: none, or priority: while work on a CUDA stream of higher priority is outstanding, "
            + "launches on lower streams of the same process wait (default: none).",
        "  GPUSEG_EXEC_IN_FLIGHT: most work in flight: on lower streams with streams by priority, and of best effort "
            + "where the daemon's mechanism is launch (default: 500us).",
        "  GPUSEG_EXEC_TOUCH: on or off; real time: have the GPU switch to the program ahead of a begin that the "
            + "daemon "
            + "expects, by a small memset (default: on).",
        "  GPUSEG_EXEC_CALLS: how calls of the driver are seen: auto, by wrappers that are preloaded, by CUPTI where "
            + "that is impossible; cupti; or check, by wrappers, and CUPTI counts what passes them by (default: auto).",
        "  GPUSEG_EXEC_WAIT: longest wait of a launch, at least 1ms; then the program runs unmanaged for a minute "
            + "(default: 10s).",
        "  GPUSEG_EXEC_VERBOSE: 1 to say what the library finds and does."},
    exitCodeListHeading = "%nExit status: that of COMMAND, or%n",
    exitCodeList = {"2:usage", "126:COMMAND cannot be started, or the daemon refused --cap",
        "127:COMMAND was not found"})
final class ExecCommand implements Callable<Integer> {
    private static final String PROGRAM = "gpuseg-exec";

    @Spec
    private CommandSpec spec;

    @Option(names = "--priority", paramLabel = "N",
        description = "Priority of the program on the GPU, 1..99, 99 is the highest.")
    private String priority;

    @Option(names = "--best-effort", description = "Run it as best effort. This is the default.")
    private boolean bestEffort;

    @Option(names = "--name", paramLabel = "NAME",
        description = "Name of the task (default: exec: and the program's name).")
    private String name;

    @Option(names = "--period", paramLabel = "TIME",
        description = "Period of its jobs, such as 10ms. For admission and deadlines.")
    private String period;

    @Option(names = "--deadline", paramLabel = "TIME", description = "Relative deadline (default: the period).")
    private String deadline;

    @Option(names = "--budget", paramLabel = "TIME",
        description = "Longest time that a segment may hold the GPU, besides the hold-off (default: no limit).")
    private String budget;

    @Option(names = "--reserve", paramLabel = "N%",
        description = "Part of the GPU's multiprocessors that the program has for itself, with --priority and a daemon "
            + "that keeps a part of the GPU free.")
    private String reserve;

    @Option(names = "--weight", paramLabel = "N", description = "Share of best-effort time, 1..10000 (initially 100).")
    private String weight;

    @Option(names = "--cap", paramLabel = "TIME/PERIOD",
        description = "Most GPU time of best-effort work in each period, such as 25ms/100ms. Needs --name and the "
            + "right to change the policy.")
    private String cap;

    @Option(names = "--print-environment",
        description = "Print the variables that a service needs instead, and run nothing.")
    private boolean printEnvironment;

    @Parameters(paramLabel = "COMMAND", arity = "0..*", description = "The program and its arguments.")
    private List<String> command = List.of();

    @Override
    public Integer call() throws IOException, InterruptedException {
        final List<String> line = new ArrayList<>(List.of(NativePrograms.ofClientLibrary(PROGRAM).toString()));
        for (final OptionSpec option : spec.options()) {
            final Object value = option.getValue();
            if (Boolean.TRUE.equals(value)) {
                line.add(option.longestName());
            } else if (value instanceof String) {
                line.add(option.longestName());
                line.add((String) value);
            }
        }
        if (!command.isEmpty()) {
            line.add("--");
            line.addAll(command);
        }
        return new ProcessBuilder(line).inheritIO().start().waitFor();
    }

    /** What follows COMMAND belongs to it. */
    static final class FirstWordEndsOptions implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec spec) {
            spec.parser().stopAtPositional(true);
            return spec;
        }
    }
}
