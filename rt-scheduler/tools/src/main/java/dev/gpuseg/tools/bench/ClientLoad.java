/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.tools.client.AdminClient;
import dev.gpuseg.tools.process.Child;
import dev.gpuseg.tools.process.Polling;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * Many clients for a long time on the virtual GPU: is anything lost, does memory grow, how late are grants.
 *
 * @param clients    processes, 1..64
 * @param rate       segments per second of each
 * @param durationMs of the measurement
 * @param cores      CPUs
 */
public record ClientLoad(int clients, int rate, long durationMs, Cores cores) {
    private static final long SAMPLE_NS = 1_000_000_000L;
    private static final double NS_PER_S = 1e9;
    private static final int LIMIT_S = 120;
    private static final long GROWTH_KIB = 8 << 10;
    private static final int FILES_PER_CLIENT = 3;

    /**
     * Starts everything, measures, ends everything.
     *
     * @return the figures; "holds" tells whether nothing was lost, nothing failed and memory did not grow
     * @throws IOException          if a file cannot be read
     * @throws TimeoutException     if a process does not end
     */
    public ObjectNode measure() throws IOException, InterruptedException, TimeoutException {
        try (LoadRig rig = new LoadRig()) {
            final List<String> daemon = new ArrayList<>(List.of("--idle", cores.enough() ? "spin" : "hybrid"));
            if (cores.enough()) {
                rig.confine(cores.below(1));
                daemon.addAll(List.of("--cpu", Integer.toString(cores.fromTop(0))));
            }
            if (cores.priority() > 0) {
                daemon.addAll(List.of("--priority", Integer.toString(cores.priority())));
            }
            // else the heap grows until its first collection
            rig.start(List.of("-XX:+AlwaysPreTouch"), daemon, List.of());
            return measure(rig);
        }
    }

    private ObjectNode measure(final LoadRig rig) throws IOException, InterruptedException, TimeoutException {
        final List<String> options = new ArrayList<>(List.of("--clients", Integer.toString(clients), "--rate",
            Integer.toString(rate), "--duration", durationMs + "ms", "--priority",
            "0"));
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
        result.put("simulated", true).put("cpus", cores.count()).put("cpu_list", cores.cpus().toString());
        result.put("dispatcher_fifo", cores.priority());
        result.setAll((ObjectNode) seen);
        final long[] journal = journaled(rig);
        final long lost = Math.abs(seen.path("begins").asLong() - AdminClient.counter(status, "begins"))
            + Math.abs(seen.path("ends").asLong() - AdminClient.counter(status, "ends"));
        result.put("lost", lost).put("poisoned", AdminClient.counter(status, "poisoned"));
        result.put("journal_dropped", AdminClient.counter(status, "journal_drops") + status.path("daemon")
            .path("journal_lost").asLong());
        result.put("journal_events_kept", journal[0]).put("journal_gaps", journal[1]);
        // a client that could not keep the rate does the rest at the end: that time counts
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
}
