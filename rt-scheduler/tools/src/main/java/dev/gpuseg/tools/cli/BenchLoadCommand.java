/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.bench.LoadRig;
import dev.gpuseg.tools.bench.Soak;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.io.PrintWriter;
import java.util.ArrayList;
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
    description = "Soak: clients, one process each, begin and end segments at a fixed rate through a real daemon on a "
        + "SIMULATED GPU. Every begin waits for its grant; segments are empty and best effort unless --priority is "
        + "given. Exit status 1: a record was lost or refused, a client failed, files were left, or memory grew.")
final class BenchLoadCommand implements Callable<Integer> {
    private static final long SAMPLE_NS = 1_000_000_000L;
    private static final double NS_PER_S = 1e9;
    private static final int LIMIT_S = 120;
    private static final long GROWTH_KIB = 8 << 10;
    private static final int FILES_PER_CLIENT = 3;

    @Spec
    private CommandSpec spec;

    @Option(names = "--clients", paramLabel = "N", defaultValue = "64", description = "1..64 (default: 64)")
    private int clients;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "1000",
        description = "segments per second of each client, 1..100000 (default: 1000)")
    private int rate;

    @Mixin
    private BenchOptions form;

    @Option(names = "--priority", paramLabel = "N", defaultValue = "0",
        description = "of every client, 0 best effort, 1..99 (default: 0)")
    private int priority;

    @Option(names = "--idle", paramLabel = "spin|hybrid|sleep",
        description = "of the daemon's dispatcher (default: spin where it has a CPU of its own, else hybrid)")
    private String idle;

    @Mixin
    private BenchCores cores;

    @Override
    public Integer call() throws IOException, InterruptedException, TimeoutException {
        if (clients < 1 || clients > 64 || rate < 1 || rate > 100_000 || form.durationMs() < 1_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--clients is " + clients + ", --rate " + rate
                + ", --duration " + form.durationMs() + "ms; use 1..64, 1..100000 and at least 1s");
        }
        cores.check();
        final ObjectNode result;
        try (LoadRig rig = new LoadRig()) {
            final List<String> daemon = new ArrayList<>(List.of("--idle", idle != null ? idle : cores.enough() ? "spin"
                : "hybrid"));
            if (cores.enough()) {
                rig.confine(cores.below(1));
                daemon.addAll(List.of("--cpu", Integer.toString(cores.fromTop(0))));
            }
            if (cores.priority() > 0) {
                daemon.addAll(List.of("--priority", Integer.toString(cores.priority())));
            }
            rig.start(List.of("-XX:+AlwaysPreTouch"), daemon);   // else the heap grows until its first collection
            result = measure(rig);
        }
        final PrintWriter out = spec.commandLine().getOut();
        if (form.json()) {
            out.println(result);
        } else {
            print(result, out);
        }
        out.flush();
        return result.path("holds").asBoolean() ? ExitCode.OK : ExitCode.FAILURE;
    }

    private ObjectNode measure(final LoadRig rig) throws IOException, InterruptedException, TimeoutException {
        final List<String> options = new ArrayList<>(List.of("--clients", Integer.toString(clients), "--rate",
            Integer.toString(rate), "--duration", form.durationMs() + "ms", "--priority",
            Integer.toString(priority)));
        if (cores.enough()) {   // one more CPU is left to the journal, the virtual GPU and the JVM's own threads
            options.addAll(List.of("--cpus", cores.below(1).without(1).toString()));
        }
        final Child generator = rig.clients(options);
        final Soak soak = new Soak(rig);
        for (long atNs = System.nanoTime(); generator.isAlive(); atNs += SAMPLE_NS) {
            soak.sample();
            LoadRig.sleepUntil(atNs + SAMPLE_NS);
        }
        final JsonNode seen = LoadRig.result(generator, LIMIT_S);
        Polling.until(() -> rig.status().path("clients").size() == 0, 5_000);
        final JsonNode status = rig.status();
        Polling.until(() -> noQueueFiles(rig), 5_000);
        final long filesLeft = rig.queueFiles().size();
        final int stopped = rig.stop();
        final ObjectNode result = JsonNodeFactory.instance.objectNode();
        result.put("simulated", true).put("cpus", cores.count()).put("cpu_list", cores.toString());
        result.put("dispatcher_fifo", cores.priority());
        result.setAll((ObjectNode) seen);
        final long[] journal = journaled(rig);
        final long lost = Math.abs(seen.path("begins").asLong() - AdminClient.counter(status, "begins"))
            + Math.abs(seen.path("ends").asLong() - AdminClient.counter(status, "ends"));
        result.put("lost", lost).put("poisoned", AdminClient.counter(status, "poisoned"));
        result.put("journal_dropped", AdminClient.counter(status, "journal_drops") + status.path("daemon")
            .path("journal_lost").asLong());
        result.put("journal_events_kept", journal[0]).put("journal_gaps", journal[1]);
        // who could not keep the rate works the rest off at the end: that time counts
        result.put("achieved_per_s", Math.round(seen.path("begin_ns").path("n").asLong()
            / (seen.path("duration_s").asDouble() + seen.path("due_ns").path("max").asLong() / NS_PER_S)));
        result.put("max_cycle_ns", AdminClient.counter(status, "max_cycle_ns"));
        soak.report(result);
        result.put("queue_files_left", filesLeft).put("stop_status", stopped);
        result.put("holds", lost == 0 && seen.path("drops").asLong() == 0 && seen.path("failed_clients").asInt() == 0
            && result.path("poisoned").asLong() == 0 && filesLeft == 0 && stopped == 0
            && result.path("queue_files_most").asLong() <= (long) FILES_PER_CLIENT * clients
            && result.path("journal_dropped").asLong() == 0
            && result.path("anon_growth_kib").asLong() <= GROWTH_KIB);
        return result;
    }

    private static boolean noQueueFiles(final LoadRig rig) {
        try {
            return rig.queueFiles().isEmpty();
        } catch (final IOException e) {
            return false;
        }
    }

    /** Events that the journal still has, and sequence numbers missing between them. */
    private static long[] journaled(final LoadRig rig) {
        final long[] sums = new long[3];   // events, gaps, last
        JournalReader.forEach(rig.root().resolve("journal"), event -> {
            sums[0]++;
            if (event.kind() != EventKind.START && sums[2] != 0) {
                sums[1] += event.seq() - sums[2] - 1;
            }
            sums[2] = event.seq();
        });
        return sums;
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
