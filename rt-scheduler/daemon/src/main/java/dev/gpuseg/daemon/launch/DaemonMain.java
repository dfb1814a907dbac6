/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** The program {@code gpuseg-daemon}: what a machine needs to run the daemon, and none of the tools. */
@Command(name = "gpuseg-daemon", mixinStandardHelpOptions = true, versionProvider = Version.class,
    description = "The daemon of gpuseg, the real-time GPU segment scheduler.",
    exitCodeListHeading = "%nExit status:%n",
    exitCodeList = {"0:done, or yes", "1:failure", "2:usage", "3:the answer is no"},
    subcommands = {
        RunCommand.class,
        ReleaseCommand.class,
        ConfigCommand.class,
    })
public final class DaemonMain implements Runnable {
    @Spec
    private CommandSpec spec;

    /** Runs a command and exits with its status. */
    public static void main(final String[] arguments) {
        System.exit(CommandLines.run(CommandLines.of(new DaemonMain()), arguments));
    }

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "no command given; use one of "
            + String.join(", ", spec.subcommands().keySet()));
    }
}
