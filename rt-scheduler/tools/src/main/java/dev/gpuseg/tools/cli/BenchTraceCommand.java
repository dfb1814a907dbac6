/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.ScratchTree;
import dev.gpuseg.tools.bench.JournalRate;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** What tracing costs, and whether it keeps up. */
@Command(name = "trace", mixinStandardHelpOptions = true,
    description = "Write 100,000 events a second through the ring and the journal's thread, as the daemon does, then "
        + "read them back and count them. Exit status 3: events were lost.")
final class BenchTraceCommand implements Callable<Integer> {
    private static final int RATE = 100_000;

    @Spec
    private CommandSpec spec;

    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "60s",
        description = "How long events are written, 1s..10min (default: ${DEFAULT-VALUE}).")
    private Duration duration;

    @Option(names = "--json", description = "Print JSON.")
    private boolean json;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (duration.toMillis() < 1000 || duration.toMinutes() > 10) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--duration is " + duration.toMillis()
                + "ms; use 1s..10min");
        }
        try (ScratchTree where = new ScratchTree(Files.createTempDirectory("gpuseg-bench-trace-"))) {
            final ObjectNode result = new JournalRate(duration, RATE).measure(where.path());
            print(result);
            return result.path("holds").asBoolean() ? ExitCode.OK : ExitCode.NO;
        }
    }

    private void print(final ObjectNode r) {
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(r);
        } else {
            out.printf(Locale.ROOT, "%d events in %.1f s (%.0f/s): %d dropped, %d missing when read back, %d gaps in "
                + "the sequence%n", r.path("events").asLong(), r.path("seconds").asDouble(),
                r.path("events_per_second").asDouble(), r.path("dropped").asLong(), r.path("missing").asLong(),
                r.path("sequence_gaps").asLong());
            final JsonNode write = r.path("write_ns_per_event");
            out.printf(Locale.ROOT, "writing one event: mean %.0f ns, p50 %.0f ns, p99 %.0f ns (each over batches of "
                + "%d, back to back); longest batch %.3f ms%n", write.path("mean").asDouble(),
                write.path("p50").asDouble(), write.path("p99").asDouble(), JournalRate.BATCH,
                r.path("write_ns_batch_max").asLong() / 1e6);
        }
        out.flush();
    }
}
