/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.daemon.launch.CommandLines;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.tools.client.AdminClient;
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
    public static CommandLine commandLine() {
        final CommandLine line = CommandLines.of(new GpusegCommand());
        final CommandLine.IExecutionExceptionHandler others = line.getExecutionExceptionHandler();
        line.setExecutionExceptionHandler((error, command, parsed) -> {
            final int status = others.handleExecutionException(error, command, parsed);
            return error instanceof AdminClient.NoDaemonException ? ExitCode.NO : status;
        });
        return line;
    }
}
