/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.tools.bench.ClientLoad;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Many clients for a long time: is anything lost, does memory grow, how late are grants. */
@Command(name = "load", mixinStandardHelpOptions = true,
    description = "Soak test: clients, one process each, begin and end segments at a fixed rate through a real daemon "
        + "on a SIMULATED GPU. Every begin waits for its grant. Segments are empty and best "
        + "effort. Exit status 1: a record was lost or refused, a client failed, files were left, or memory grew.")
final class BenchLoadCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Option(names = "--clients", paramLabel = "N", defaultValue = "64",
        description = "Number of clients, 1..64 (default: ${DEFAULT-VALUE}).")
    private int clients;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "1000",
        description = "Segments per second of each client, 1..100000 (default: ${DEFAULT-VALUE}).")
    private int rate;

    @Mixin
    private BenchOptions form;

    @Mixin
    private CoreOptions cores;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (clients < 1 || clients > 64 || rate < 1 || rate > 100_000 || form.durationMs() < 1_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--clients is " + clients + ", --rate " + rate
                + ", --duration " + form.durationMs() + "ms; use 1..64, 1..100000 and at least 1s");
        }
        final ObjectNode result = new ClientLoad(clients, rate, form.durationMs(), cores.cores())
            .measure();
        final PrintWriter out = spec.commandLine().getOut();
        if (form.json()) {
            out.println(result);
        } else {
            print(result, out);
        }
        out.flush();
        return result.path("holds").asBoolean() ? ExitCode.OK : ExitCode.FAILURE;
    }

    private static void print(final ObjectNode r, final PrintWriter out) {
        out.printf(Locale.ROOT, "%d clients x %d segments/s for %.0f s on a SIMULATED GPU, %d CPUs: %d begins, "
            + "%d ends, %d per second%n", r.path("clients").asInt(), r.path("rate").asInt(),
            r.path("duration_s").asDouble(), r.path("cpus").asInt(), r.path("begins").asLong(),
            r.path("ends").asLong(), r.path("achieved_per_s").asLong());
        out.printf("%-34s %10s %10s %10s %10s %10s%n", "ns", "p50", "p99", "p99.9", "p99.99", "max");
        for (final String name : List.of("begin", "due")) {
            final JsonNode v = r.path(name + "_ns");
            out.printf("%-34s %10d %10d %10d %10d %10d%n", "begin".equals(name) ? "begin to grant"
                : "from when it was due to the grant", v.path("p50").asLong(), v.path("p99").asLong(),
                v.path("p99_9").asLong(), v.path("p99_99").asLong(), v.path("max").asLong());
        }
        out.printf(Locale.ROOT, "lost %d, refused %d, failed clients %d, journal: %d dropped, %d gaps; private memory "
            + "%.1f -> %.1f MiB; heap in use after the "
            + "last collections %.1f -> %.1f MiB; queue files at most %d, %d made and deleted, left %d; journal files "
            + "%d made, at most %d: %s%n", r.path("lost").asLong(),
            r.path("drops").asLong(), r.path("failed_clients").asInt(), r.path("journal_dropped").asLong(),
            r.path("journal_gaps").asLong(), r.path("anon_kib_second_quarter").asLong() / 1024.0,
            r.path("anon_kib_last_quarter").asLong() / 1024.0, r.path("heap_kib_low_second_quarter").asLong() / 1024.0,
            r.path("heap_kib_low_last_quarter").asLong() / 1024.0, r.path("queue_files_most").asLong(),
            r.path("queue_files_seen").asLong(), r.path("queue_files_left").asLong(),
            r.path("journal_files_seen").asLong(), r.path("journal_files_most").asLong(),
            r.path("holds").asBoolean() ? "holds" : "DOES NOT HOLD");
    }
}
