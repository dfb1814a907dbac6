/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.daemon.launch.DurationConverter;
import dev.gpuseg.daemon.launch.ExitCode;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** What tracing costs, and whether it keeps up. */
@Command(name = "trace", mixinStandardHelpOptions = true,
    description = "Write events at a rate through the ring and the journal's thread, as the daemon does, read them "
        + "back and count. Exit status 3: events were lost.")
final class BenchTraceCommand implements Callable<Integer> {
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int EVENT_BYTES = 68;
    private static final int BATCH = 64;
    private static final long REST_NS = 1_000_000;
    private static final long HIGHEST_NS = 60 * NS_PER_S;

    @Spec
    private CommandSpec spec;

    @Option(names = "--duration", paramLabel = "DURATION", converter = DurationConverter.class, defaultValue = "60s",
        description = "1s..10min (default: ${DEFAULT-VALUE})")
    private Duration duration;

    @Option(names = "--rate", paramLabel = "N", defaultValue = "100000",
        description = "events per second, 1000..5000000 (default: ${DEFAULT-VALUE})")
    private int rate;

    @Option(names = "--dir", paramLabel = "DIR", description = "where the journal is written (default: a new directory "
        + "in the temporary one); it needs 68 bytes per event")
    private Path dir;

    @Option(names = "--json", description = "as JSON")
    private boolean json;

    private volatile boolean done;

    @Override
    public Integer call() throws IOException, InterruptedException {
        if (duration.toMillis() < 1000 || duration.toMinutes() > 10) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--duration is " + duration.toMillis()
                + "ms; use 1s..10min");
        }
        if (rate < 1000 || rate > 5_000_000) {
            throw new CommandLine.ParameterException(spec.commandLine(), "--rate is " + rate + "; use 1000..5000000");
        }
        final Path where = dir == null ? Files.createTempDirectory("gpuseg-bench-trace-")
            : Files.createDirectories(dir);
        try {
            return measure(where);
        } finally {
            if (dir == null) {
                RuntimeDirectory.deleteTree(where);
            }
        }
    }

    private int measure(final Path where) throws IOException, InterruptedException {
        final long events = Math.multiplyExact(rate, duration.toMillis()) / 1000;
        final long cap = 4 * (events * EVENT_BYTES + (64L << 20));   // nothing of it may be deleted
        final Histogram batches = new Histogram(HIGHEST_NS, 3);
        final long beganNs;
        final long tookNs;
        final long dropped;
        try (JournalRing ring = new JournalRing(where.resolve("ring"), JournalRing.DEFAULT_CAPACITY);
            JournalAgent agent = new JournalAgent(ring, where.resolve("journal"), cap)) {
            final Thread reader = new Thread(() -> drain(agent), "gpuseg-journal");
            reader.start();
            beganNs = System.nanoTime();
            write(ring, events, beganNs, batches);
            tookNs = System.nanoTime() - beganNs;
            done = true;
            reader.join();
            agent.drain();
            dropped = ring.dropped();
        }
        final long[] seen = new long[3];   // events of ours, gaps, last sequence number
        JournalReader.forEach(where.resolve("journal"), event -> {
            seen[0] += event.kind() == EventKind.BEGIN ? 1 : 0;
            seen[1] += event.seq() - seen[2] - 1;
            seen[2] = event.seq();
        });
        final long lost = events - seen[0];
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        root.put("events", events).put("seconds", tookNs / 1e9).put("events_per_second", events * 1e9 / tookNs)
            .put("dropped", dropped).put("missing", lost).put("sequence_gaps", seen[1]);
        root.putObject("write_ns_per_event").put("mean", batches.getMean() / BATCH)
            .put("p50", batches.getValueAtPercentile(50) / (double) BATCH)
            .put("p99", batches.getValueAtPercentile(99) / (double) BATCH);
        root.put("write_ns_batch_max", batches.getMaxValue());
        final PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(root);
        } else {
            out.printf(Locale.ROOT, "%d events in %.1f s (%.0f/s): %d dropped, %d missing when read back, %d gaps in "
                + "the sequence%n", events, tookNs / 1e9, events * 1e9 / tookNs, dropped, lost, seen[1]);
            out.printf(Locale.ROOT, "writing one event: mean %.0f ns, p50 %.0f ns, p99 %.0f ns (each over batches of "
                + "%d, back to back); longest batch %.3f ms%n", batches.getMean() / BATCH,
                batches.getValueAtPercentile(50) / (double) BATCH, batches.getValueAtPercentile(99) / (double) BATCH,
                BATCH, batches.getMaxValue() / 1e6);
        }
        out.flush();
        return lost == 0 && dropped == 0 && seen[1] == 0 ? ExitCode.OK : ExitCode.NO;
    }

    private void drain(final JournalAgent agent) {
        while (!done) {
            if (agent.doWork() == 0) {
                LockSupport.parkNanos(this, REST_NS);
            }
        }
    }

    /** Batches at their times, whatever was late before: the rate holds over the whole run. */
    private void write(final JournalRing ring, final long events, final long beganNs, final Histogram batches) {
        final long periodNs = BATCH * NS_PER_S / rate;
        long written = 0;
        for (long k = 0; written < events; k++) {
            final long dueNs = beganNs + k * periodNs;
            for (long leftNs = dueNs - System.nanoTime(); leftNs > 0; leftNs = dueNs - System.nanoTime()) {
                if (leftNs > 2 * REST_NS / 10) {
                    LockSupport.parkNanos(this, leftNs / 2);
                }
            }
            final int n = (int) Math.min(BATCH, events - written);
            final long startNs = System.nanoTime();
            for (int i = 0; i < n; i++) {
                ring.write(EventKind.BEGIN, startNs, 0, 1, i, written + i, 1, 1, startNs, dueNs, k);
            }
            batches.recordValue(Math.min(HIGHEST_NS, System.nanoTime() - startNs));
            written += n;
        }
    }
}
