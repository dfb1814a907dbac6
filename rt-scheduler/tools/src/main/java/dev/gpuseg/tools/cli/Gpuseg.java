/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.launch.CommandLines;
import dev.gpuseg.daemon.launch.Version;
import dev.gpuseg.tools.client.AdminClient;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;

/** The program: {@code gpuseg COMMAND}. */
public final class Gpuseg {
    private static final Map<String, Supplier<Object>> TALKING = Map.of("status", StatusCommand::new, "set",
        SetCommand::new, "cgroups", CgroupsCommand::new, "stop", StopCommand::new, "top", TopCommand::new);

    /** The root without the other commands. */
    @Command(name = "gpuseg", mixinStandardHelpOptions = true, versionProvider = Version.class)
    static final class One {
    }

    private Gpuseg() {
    }

    /** Runs a command and exits with its status. */
    public static void main(final String[] arguments) {
        System.exit(CommandLines.run(lineFor(arguments), arguments));
    }

    /**
     * The command line for one call. Commands that only talk to a daemon are called often, and the description of all
     * commands costs more than all that they do: theirs has that one command only.
     *
     * @param arguments what was typed
     * @return a command line that understands the arguments as {@link #commandLine} does
     */
    static CommandLine lineFor(final String... arguments) {
        final Supplier<Object> called = arguments.length == 0 ? null : TALKING.get(arguments[0]);
        final boolean version = arguments.length == 1 && List.of("-V", "--version").contains(arguments[0]);
        if (called == null && !version) {
            return commandLine();
        }
        final CommandSpec root = CommandSpec.forAnnotatedObject(new One());
        if (called != null) {
            root.addSubcommand(arguments[0], new CommandLine(called.get()));
        }
        return answering(CommandLines.of(root));
    }

    /** The command line, for use within a process. */
    public static CommandLine commandLine() {
        return answering(CommandLines.of(new GpusegCommand()));
    }

    /** Without a daemon the answer of every command is no. */
    private static CommandLine answering(final CommandLine line) {
        final CommandLine.IExecutionExceptionHandler others = line.getExecutionExceptionHandler();
        line.setExecutionExceptionHandler((error, command, parsed) -> {
            final int status = others.handleExecutionException(error, command, parsed);
            return error instanceof AdminClient.NoDaemonException ? ExitCode.NO : status;
        });
        return line;
    }
}
