/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** What happened, after the fact. */
@Command(name = "trace", mixinStandardHelpOptions = true,
    description = "Record what the daemon decided and did; inspect, check and export recordings.",
    subcommands = {
        TraceRecordCommand.class,
        TraceStatsCommand.class,
        TraceCheckCommand.class,
        TraceExportCommand.class,
        TraceTasksetCommand.class,
    })
final class TraceCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "no command given; use one of "
            + String.join(", ", spec.subcommands().keySet()));
    }
}
