/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.daemon.process.StatusText;
import java.io.PrintWriter;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** What the daemon does now. */
@Command(name = "status", mixinStandardHelpOptions = true,
    description = "Show the running daemon's tasks, and the counters that say trouble; --json has all. Exit status "
        + "3: no daemon runs.")
final class StatusCommand extends DaemonQuery {
    @Mixin
    private WatchOption watch;

    @Override
    public Integer call() {
        return watch.run(out(), json(), this::show);
    }

    @Override
    JsonNode part(final JsonNode status) {
        return status;
    }

    @Override
    void print(final JsonNode status, final PrintWriter out) {
        out.print(StatusText.of(status));
    }
}
