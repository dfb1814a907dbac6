/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.trace.Export;
import dev.gpuseg.tools.trace.GpuClock;
import dev.gpuseg.tools.trace.Kernels;
import dev.gpuseg.tools.trace.Source;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A recording for viewers. */
@Command(name = "export", mixinStandardHelpOptions = true,
    description = "Write a recording in the format of a viewer.")
final class TraceExportCommand implements Callable<Integer> {
    private CommandSpec spec;

    @Parameters(paramLabel = "RECORDING", description = "Recording, or directory of a journal.")
    private Path file;

    @Option(names = "--out", paramLabel = "FILE",
        description = "Output file; its ending chooses the format, below (default: the recording's name with .html, in "
            + "the current directory).")
    private Path out;

    @Option(names = "--kernels", paramLabel = "FILE",
        description = "CSV of kernels that another tool saw on the GPU, shown beside the segments (perfetto): "
            + "gpu,name,start_gpu_ns,end_gpu_ns. Needs --gpu-clock.")
    private Path kernels;

    @Option(names = "--gpu-clock", paramLabel = "FILE",
        description = "CSV of two or more readings of CLOCK_MONOTONIC and the GPU's clock: before_ns,gpu_ns,after_ns.")
    private Path gpuClock;

    @Spec
    void spec(final CommandSpec given) {
        spec = given;
        spec.usageMessage().footer(Stream.concat(Stream.of("", "Formats:"), Arrays.stream(Export.values())
            .map(e -> "  " + e.ending() + ": " + e.summary())).toArray(String[]::new));
    }

    @Override
    public Integer call() throws IOException {
        final Export chosen;
        try {
            chosen = out == null ? Export.HTML : Export.ofFile(out);
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        final Path to = out != null ? out
            : Path.of(file.toAbsolutePath().getFileName().toString().replaceFirst("\\.[^.]*$", "") + chosen.ending());
        if ((kernels == null) != (gpuClock == null)) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "--kernels and --gpu-clock belong together; give both, or neither");
        }
        try {
            chosen.write(Source.open(file), to, kernels == null ? null
                : Kernels.read(kernels, GpuClock.read(gpuClock)));
        } catch (final IllegalArgumentException e) {
            throw new CommandLine.ParameterException(spec.commandLine(), e.getMessage(), e);
        }
        spec.commandLine().getOut().println(to + ": " + Files.size(to) + " bytes; " + chosen.summary());
        return ExitCode.OK;
    }
}
