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
import picocli.CommandLine.Parameters;

/**
 * Measures the latency of a GPU. The C program {@code gpuseg-latency} does it, which the launchers start directly: it
 * needs no runtime of Java. This class is its help and manual page, and passes every argument on where somebody starts
 * it through Java.
 */
@Command(name = "latency", mixinStandardHelpOptions = true,
    modelTransformer = LatencyCommand.EverythingIsPassedOn.class,
    description = "Measure how late periodic work ends on an NVIDIA GPU, as cyclictest does for a CPU. A latency "
        + "counts from the time at which the work was due until the CPU sees its end. Needs no daemon, no root and no "
        + "CUDA toolkit.",
    footer = {"",
        "Options:",
        "  --work WORK: a kernel of some time, such as 5ms; read:TIME: one that reads memory; copy:SIZE, such as "
            + "copy:8MiB: a camera's frame from pinned memory to the GPU; graph:N: a CUDA graph of N kernels that do "
            + "nothing (default: one such kernel).",
        "  --period TIME: how often it is due (default: 1ms, or more: 4 times the kernel, 1ms for each MiB or 50 "
            + "kernels).",
        "  --duration TIME: of each measurement (default: 10s). Ctrl-C ends it earlier.",
        "  --load KIND,...: measure alone, then beside a process for each KIND that keeps the GPU busy: "
            + "products, reads, copies, launches, contexts. A KIND may stand there several times.",
        "  --compare: measure once more among clients of MPS (beside load also with limits that leave 12 percent of "
            + "the GPU free), and as a real-time task of the daemon; one of them must run.",
        "  --priority N: of that task, 1..99 (default: 49).",
        "  --gpu N: which GPU, as nvidia-smi counts (default: 0).",
        "  --break TIME: end at the first latency above TIME, and stop the kernel's trace where that is "
            + "permitted.",
        "  --json: print one JSON object instead of the table.",
        "  --html FILE: write a page with the distributions.",
        "  --histfile FILE: write lines of microseconds and counts.",
        "",
        "chrt -f 50 gpuseg latency gives the measuring thread a real-time priority on its CPU."},
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:measured", "1:failure", "2:usage", "3:no GPU, a latency above --break, or nothing to compare"})
final class LatencyCommand implements Callable<Integer> {
    private static final String PROGRAM = "gpuseg-latency";

    @Parameters(paramLabel = "OPTION", arity = "0..*", description = "Listed below.")
    private List<String> arguments = List.of();

    @Override
    public Integer call() throws IOException, InterruptedException {
        final List<String> line = new ArrayList<>(List.of(NativePrograms.named(PROGRAM).toString()));
        line.addAll(arguments);
        return new ProcessBuilder(line).inheritIO().start().waitFor();
    }

    /** The options are the program's. */
    static final class EverythingIsPassedOn implements IModelTransformer {
        @Override
        public CommandSpec transform(final CommandSpec spec) {
            spec.parser().unmatchedOptionsArePositionalParams(true);
            return spec;
        }
    }
}
