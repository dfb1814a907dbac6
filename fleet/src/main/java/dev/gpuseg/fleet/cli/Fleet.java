/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.cli;

import java.io.FileNotFoundException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import picocli.CommandLine;
import picocli.CommandLine.Command;

/** {@code gpuseg-fleet}: work for many machines. */
@Command(name = "gpuseg-fleet", mixinStandardHelpOptions = true, version = "gpuseg-fleet 0.1.0",
    description = "Sweeps, campaigns and the recordings of many robots on Apache Spark.",
    subcommands = {FleetSweepCommand.class, CampaignCommand.class, RecordingsCommand.class,
        MakeRecordingsCommand.class})
public final class Fleet {
    private Fleet() {
    }

    /** The command line: a parser that writes one line for an expected failure. */
    public static CommandLine commandLine() {
        return new CommandLine(new Fleet()).setExecutionExceptionHandler((failure, line, result) -> {
            if (failure instanceof NoSuchFileException || failure instanceof FileNotFoundException) {
                line.getErr().println(line.getCommandName() + ": " + failure.getMessage() + ": no such file");
            } else if (failure instanceof IllegalArgumentException || failure instanceof IllegalStateException
                || failure instanceof FileSystemException) {
                line.getErr().println(line.getCommandName() + ": " + failure.getMessage());
            } else {
                throw failure;
            }
            return 1;
        });
    }

    /** Runs a command and ends the process with its status. */
    public static void main(final String[] arguments) {
        System.exit(commandLine().execute(arguments));
    }
}
