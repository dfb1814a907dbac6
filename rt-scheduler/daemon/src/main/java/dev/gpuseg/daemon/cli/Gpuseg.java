/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cli;

import java.io.PrintWriter;
import picocli.CommandLine;

/** The program: {@code gpuseg COMMAND}. */
public final class Gpuseg {
    private Gpuseg() {
    }

    /**
     * Runs a command and exits with its status.
     *
     * @param arguments the command line
     */
    public static void main(final String[] arguments) {
        System.exit(commandLine().execute(arguments));
    }

    /**
     * The command line, for use within a process.
     *
     * @return a new one
     */
    static CommandLine commandLine() {
        final CommandLine line = new CommandLine(new GpusegCommand());
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
