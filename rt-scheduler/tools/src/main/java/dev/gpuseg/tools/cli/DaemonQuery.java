/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.DirectoryOption;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.client.AdminClient;
import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** A command that shows a part of the daemon's status, or says that no daemon runs. */
abstract class DaemonQuery implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Mixin
    private DirectoryOption directory;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    /** The part of the status that is shown. */
    abstract JsonNode part(JsonNode status);

    /** Shows it to a human. */
    abstract void print(JsonNode part, PrintWriter out);

    @Override
    public Integer call() {
        return show();
    }

    /** Whether JSON was asked for. */
    final boolean json() {
        return json;
    }

    /** Where the answer goes. */
    final PrintWriter out() {
        return spec.commandLine().getOut();
    }

    /** Asks and answers once; returns the exit status. */
    final int show() {
        final PrintWriter out = out();
        try {
            final JsonNode part = part(AdminClient.ask(directory.find(), AdminClient.command("status")));
            if (json) {
                out.println(part);
            } else {
                print(part, out);
            }
            return ExitCode.OK;
        } catch (final AdminClient.NoDaemonException e) {
            out.println(json ? "{\"running\":false}" : e.getMessage());
            return ExitCode.NO;
        } finally {
            out.flush();
        }
    }
}
