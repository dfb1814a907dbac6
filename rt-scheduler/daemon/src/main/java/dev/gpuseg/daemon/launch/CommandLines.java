/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.io.ResultFile;
import dev.gpuseg.command.ExitCode;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.file.FileSystemException;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine;

/**
 * How every program of this project answers a wrong command line and an error: one line, and the exit status. What it
 * prints is UTF-8; a result that cannot be printed is a failure.
 */
public final class CommandLines {
    private CommandLines() {
    }

    /** A command line of a root command. */
    public static CommandLine of(final Object root) {
        final CommandLine line = readingNumbers(new CommandLine(root));
        line.setCaseInsensitiveEnumValuesAllowed(true);
        line.setOut(new StandardOutput());
        line.setErr(StandardOutput.error());
        line.setExecutionStrategy(parsed -> printed(line, new CommandLine.RunLast().execute(parsed)));
        line.setExecutionExceptionHandler((error, command, parsed) -> {
            final PrintWriter err = command.getErr();
            err.println("gpuseg: " + message(error));
            return error instanceof IllegalArgumentException ? ExitCode.USAGE : ExitCode.FAILURE;
        });
        line.setParameterExceptionHandler((error, arguments) -> {
            final PrintWriter err = error.getCommandLine().getErr();
            err.println("gpuseg: " + (error instanceof CommandLine.UnmatchedArgumentException unknown
                ? unknown.getUnmatched().stream().map(SettingKeys::advice).flatMap(Optional::stream).findFirst()
                    .orElse(error.getMessage() + meant(unknown)) : error.getMessage()));
            err.println("See: " + error.getCommandLine().getCommandSpec().qualifiedName(" ") + " --help");
            return ExitCode.USAGE;
        });
        return line;
    }

    private static String meant(final CommandLine.UnmatchedArgumentException unknown) {
        final List<String> similar = unknown.getSuggestions();
        return similar.isEmpty() ? "" : "; did you mean '" + similar.get(0) + "'?";
    }

    /**
     * Runs a command, whatever happens in it: an error of the runtime, such as a page that a full file system cannot
     * give to a mapped file, is one line as well.
     *
     * @param line      of {@link #of}
     * @param arguments what was typed
     * @return the exit status
     */
    public static int run(final CommandLine line, final String... arguments) {
        try {
            return line.execute(arguments);
        } catch (final OutOfMemoryError e) {
            throw e;   // what watches the memory ends the process
        } catch (final Error e) {
            line.getErr().println("gpuseg: " + message(e) + (e instanceof InternalError
                ? "; is a file system full that the program writes to?" : ""));
            return ExitCode.FAILURE;
        }
    }

    /** A command line that takes the numbers of its options as {@link #number} does. */
    static CommandLine readingNumbers(final CommandLine line) {
        line.registerConverter(Integer.class, text -> (int) number(text, Integer.MIN_VALUE, Integer.MAX_VALUE));
        line.registerConverter(int.class, text -> (int) number(text, Integer.MIN_VALUE, Integer.MAX_VALUE));
        line.registerConverter(Long.class, text -> number(text, Long.MIN_VALUE, Long.MAX_VALUE));
        line.registerConverter(long.class, text -> number(text, Long.MIN_VALUE, Long.MAX_VALUE));
        return line;
    }

    /** Decimal digits as in files: a leading zero means octal to some, and is refused. */
    private static long number(final String text, final long least, final long most) {
        if (!text.matches("[+-]?(0|[1-9][0-9]*)")) {
            throw new CommandLine.TypeConversionException("'" + text + "' is no whole number; write decimal digits"
                + (text.matches("[+-]?[0-9]+") ? " without leading zeros" : ""));
        }
        final BigInteger value = new BigInteger(text);
        if (value.compareTo(BigInteger.valueOf(least)) < 0 || value.compareTo(BigInteger.valueOf(most)) > 0) {
            throw new CommandLine.TypeConversionException("'" + text + "' is too large; write " + least + ".."
                + most);
        }
        return value.longValue();
    }

    private static int printed(final CommandLine line, final int status) {
        final IOException failure = line.getOut() instanceof StandardOutput out ? out.failure() : null;
        if (failure == null) {
            return status;
        }
        line.getErr().println("gpuseg: " + new ResultFile.UnwritableException("standard output", failure)
            .getMessage());
        return ExitCode.FAILURE;
    }

    /** One line; the message of a file system's exception may be no more than the name of the file. */
    private static String message(final Throwable error) {
        final Throwable told = error instanceof UncheckedIOException e ? e.getCause() : error;
        if (told instanceof FileSystemException e && e.getFile() != null
            && (e.getReason() == null || !String.valueOf(e.getMessage()).contains("; "))) {
            return e.getFile() + ": " + ResultFile.reason(e);
        }
        return told.getMessage() == null ? told.toString() : told.getMessage();
    }
}
