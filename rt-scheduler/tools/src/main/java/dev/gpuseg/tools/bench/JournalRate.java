/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalReader;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.HdrHistogram.Histogram;

/** What writing the journal costs, and whether its thread keeps up: through the ring, as the daemon does. One use. */
public final class JournalRate {
    /** Events that are timed together: one is too short. */
    public static final int BATCH = 64;

    private static final long NS_PER_S = 1_000_000_000L;
    private static final int EVENT_BYTES = 68;
    private static final long REST_NS = 1_000_000;
    private static final long HIGHEST_NS = 60 * NS_PER_S;

    private final Duration duration;
    private final int rate;
    private volatile boolean done;

    /**
     * One measurement.
     *
     * @param duration how long events are written
     * @param rate     events per second
     */
    public JournalRate(final Duration duration, final int rate) {
        this.duration = duration;
        this.rate = rate;
    }

    /**
     * Writes, reads back, counts.
     *
     * @param where existing directory for the journal; 68 bytes per event
     * @return the figures; "holds" tells whether no event was lost
     * @throws IOException if the journal cannot be written or read
     */
    public ObjectNode measure(final Path where) throws IOException, InterruptedException {
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
        root.put("holds", lost == 0 && dropped == 0 && seen[1] == 0);
        return root;
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
