/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Measurements on this machine. */
@Command(name = "bench", mixinStandardHelpOptions = true,
    description = "Measure this machine.",
    subcommands = {
        BenchIpcCommand.class,
        BenchGpuCommand.class,
        BenchTraceCommand.class,
        BenchFairCommand.class,
        BenchLoadCommand.class,
        BenchTailCommand.class,
    })
final class BenchCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "no bench given; use one of "
            + String.join(", ", spec.subcommands().keySet()));
    }
}
