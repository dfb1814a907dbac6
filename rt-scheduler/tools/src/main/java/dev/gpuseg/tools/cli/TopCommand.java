/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.top.TopLoop;
import dev.gpuseg.tools.top.TopRow;
import dev.gpuseg.tools.top.TopScreen;
import java.io.IOException;
import java.io.PrintWriter;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jline.utils.AttributedString;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** The running daemon's tasks in the terminal, again and again. */
@Command(name = "top", mixinStandardHelpOptions = true,
    description = "Watch the running daemon's tasks in the terminal. Exit status 3 with --once or --json: no daemon "
        + "runs.",
    footer = "%nKeys: arrows select, s and S sort, r reverse, / filter, p priority, + and - raise and lower it, space "
        + "pause, q quit.%nResponse times are those of jobs; of a task that marks no jobs, every segment is one. D is "
        + "the relative deadline, and MISS counts jobs past it. GPU%% is over the last 5 seconds.")
final class TopCommand implements Callable<Integer> {
    private static final int PLAIN_WIDTH = 160;
    private static final Duration DELAY_MIN = Duration.ofMillis(100);
    private static final Duration DELAY_MAX = Duration.ofMinutes(1);

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--once", description = "Print once as plain text and exit.")
    private boolean once;

    @Option(names = "--delay", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "500ms",
        description = "Time between two updates, 100ms..1min (default: ${DEFAULT-VALUE}).")
    private Duration delay;

    @Option(names = "--sort", paramLabel = "COLUMN", defaultValue = "priority", completionCandidates = Columns.class,
        description = "Column to sort by, one of ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
    private TopRow.Sort sort;

    @Option(names = "--json", description = "Print what is shown once as JSON and exit; times are in nanoseconds.")
    private boolean json;

    /** For the help. */
    static final class Columns implements Iterable<String> {
        @Override
        public Iterator<String> iterator() {
            return Arrays.stream(TopRow.Sort.values()).map(column -> column.name().toLowerCase(Locale.ROOT)).iterator();
        }
    }

    @Option(names = "--filter", paramLabel = "TEXT", defaultValue = "",
        description = "Only tasks whose name or state contains this text, or of the process with this pid (default: "
            + "all).")
    private String filter;

    @Override
    public Integer call() throws IOException {
        if (delay.compareTo(DELAY_MIN) < 0 || delay.compareTo(DELAY_MAX) > 0) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--delay is " + delay.toMillis()
                + "ms; use 100ms..1min");
        }
        final RuntimeDirectory where = directory.find();
        if (once || json) {
            return printOnce(where);
        }
        if (System.console() == null) {
            throw new IllegalStateException("top: input or output is no terminal; use --once, or `status --json` in "
                + "scripts");
        }
        // the provider that needs no native library: stty
        try (Terminal terminal = TerminalBuilder.builder().system(true).provider("exec").dumb(false).build()) {
            new TopLoop(terminal, where, delay.toNanos(), sort, filter).run();
        }
        return ExitCode.OK;
    }

    private int printOnce(final RuntimeDirectory where) {
        final PrintWriter out = spec.commandLine().getOut();
        final JsonNode view;
        try {
            view = AdminClient.ask(where, TopLoop.request());
        } catch (final AdminClient.NoDaemonException e) {
            out.println(e.getMessage());
            out.flush();
            return ExitCode.NO;
        }
        if (json) {
            out.println(view);
            out.flush();
            return ExitCode.OK;
        }
        final TopScreen screen = new TopScreen(PLAIN_WIDTH);
        for (final AttributedString line : screen.header(view)) {
            out.println(line.toString().stripTrailing());
        }
        out.println();
        out.println(screen.heading(sort, false).toString().stripTrailing());
        for (final TopRow row : TopRow.of(view, filter, sort, false)) {
            out.println(screen.row(row, false).toString().stripTrailing());
        }
        out.flush();
        return ExitCode.OK;
    }
}
