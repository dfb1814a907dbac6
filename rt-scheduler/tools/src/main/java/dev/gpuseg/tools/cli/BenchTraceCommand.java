/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.bench.JournalRate;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** What tracing costs, and whether it keeps up. */
@Command(name = "trace", mixinStandardHelpOptions = true,
    description = "Write 100,000 events a second for a minute through the ring and the journal's thread, as the daemon "
        + "does, then read them back and count them. Exit status 3: events were lost.")
final class BenchTraceCommand implements Callable<Integer> {
    private static final int RATE = 100_000;
    private static final Duration DURATION = Duration.ofMinutes(1);

    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() throws IOException, InterruptedException {
        try (ScratchTree where = new ScratchTree(Files.createTempDirectory("gpuseg-bench-trace-"))) {
            final ObjectNode result = new JournalRate(DURATION, RATE).measure(where.path());
            print(result);
            return result.path("holds").asBoolean() ? ExitCode.OK : ExitCode.NO;
        }
    }

    private void print(final ObjectNode r) {
        final PrintWriter out = spec.commandLine().getOut();
        out.printf(Locale.ROOT, "%d events in %.1f s (%.0f/s): %d dropped, %d missing when read back, %d gaps in the "
            + "sequence%n", r.path("events").asLong(), r.path("seconds").asDouble(),
            r.path("events_per_second").asDouble(), r.path("dropped").asLong(), r.path("missing").asLong(),
            r.path("sequence_gaps").asLong());
        final JsonNode write = r.path("write_ns_per_event");
        out.printf(Locale.ROOT, "writing one event: mean %.0f ns, p50 %.0f ns, p99 %.0f ns (each over batches of %d, "
            + "back to back); longest batch %.3f ms%n", write.path("mean").asDouble(), write.path("p50").asDouble(),
            write.path("p99").asDouble(), JournalRate.BATCH, r.path("write_ns_batch_max").asLong() / 1e6);
        out.flush();
    }
}
