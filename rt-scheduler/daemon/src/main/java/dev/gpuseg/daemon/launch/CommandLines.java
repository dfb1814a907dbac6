/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.command.ExitCode;
import java.io.PrintWriter;
import picocli.CommandLine;

/** How every program of this project answers a wrong command line and an error: one line, and the exit status. */
public final class CommandLines {
    private CommandLines() {
    }

    /** A command line of a root command. */
    public static CommandLine of(final Object root) {
        final CommandLine line = new CommandLine(root);
        line.setCaseInsensitiveEnumValuesAllowed(true);
        line.setExecutionExceptionHandler((error, command, parsed) -> {
            final PrintWriter err = command.getErr();
            err.println("gpuseg: " + (error.getMessage() == null ? error.toString() : error.getMessage()));
            return error instanceof IllegalArgumentException ? ExitCode.USAGE : ExitCode.FAILURE;
        });
        line.setParameterExceptionHandler((error, arguments) -> {
            final PrintWriter err = error.getCommandLine().getErr();
            err.println("gpuseg: " + error.getMessage());
            err.println("See: " + error.getCommandLine().getCommandSpec().qualifiedName(" ") + " --help");
            return ExitCode.USAGE;
        });
        return line;
    }
}
