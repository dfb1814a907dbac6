/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.top.TopLoop;
import dev.gpuseg.tools.top.TopRow;
import dev.gpuseg.tools.top.TopScreen;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import org.jline.terminal.Terminal;
import org.jline.terminal.TerminalBuilder;
import org.jline.utils.AttributedString;
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
    private static final long DELAY_NS = 500_000_000;

    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--once", description = "Print once as plain text and exit.")
    private boolean once;

    @Option(names = "--json", description = "Print what is shown once as JSON and exit; times are in nanoseconds.")
    private boolean json;

    @Override
    public Integer call() throws IOException {
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
            new TopLoop(terminal, where, DELAY_NS, TopRow.Sort.PRIORITY, "").run();
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
        out.println(screen.heading(TopRow.Sort.PRIORITY, false).toString().stripTrailing());
        for (final TopRow row : TopRow.of(view, "", TopRow.Sort.PRIORITY, false)) {
            out.println(screen.row(row, false).toString().stripTrailing());
        }
        out.flush();
        return ExitCode.OK;
    }
}
