/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.management.ThreadMXBean;
import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventTap;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.lang.management.ManagementFactory;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.ObjLongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What an event must not cost on the journal's thread: memory. Times: {@code MetricsBenchmark}. */
@Timeout(120)
class MetricsCostTest {
    private static final int TASKS = 8;
    private static final int ROUNDS = 5_000;
    private static final int PARTS = 8;
    /** Measured: 6; with Prometheus 63. At 20,000 events/s the limits are 1.3 and 5 MB/s of garbage. */
    private static final double LIMIT_BYTES = 64;
    private static final double SHOWN_LIMIT_BYTES = 256;
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    @TempDir
    private Path directory;
    private int nextDirectory;

    private static final class NoReadings implements DaemonReadings {
        @Override
        public Map<String, String> info() {
            return Map.of();
        }

        @Override
        public void counters(final ObjLongConsumer<String> to) {
            // none
        }

        @Override
        public void conductorCounters(final ObjLongConsumer<String> to) {
            // none
        }

        @Override
        public int heldContexts() {
            return 0;
        }

        @Override
        public long maxCycleNs() {
            return 0;
        }

        @Override
        public long journalWritten() {
            return 0;
        }

        @Override
        public long journalLost() {
            return 0;
        }

        @Override
        public ObserverReadings observer() {
            return ObserverReadings.NONE;
        }
    }

    /** Openings, then one period in which a task of higher priority preempts each of the others. */
    private List<JournalEvent> events(final boolean openings) {
        final List<JournalEvent> all = new ArrayList<>();
        final Path work = directory.resolve((openings ? "openings" : "period") + nextDirectory++);
        try (JournalRing ring = new JournalRing(work.resolveSibling(work.getFileName() + ".ring"), 1 << 20);
            JournalAgent agent = new JournalAgent(ring, work, 1 << 20)) {
            agent.addTap(event -> all.add(event.copy()));
            long at = 1_000;
            for (int task = 1; task <= TASKS; task++) {
                if (openings) {
                    ring.writeText(EventKind.TASK_OPEN, at, 0, task, 10 + task, 1, task, 0, "{\"name\":\"t" + task
                        + "\",\"pid\":1,\"priority\":" + task + "}");
                    continue;
                }
                final int high = TASKS;
                at += 10_000 * task;
                ring.write(EventKind.BEGIN, at, 0, 0, task, 1, 10 + task, 1, at - 500, 0, at + 1_000_000);
                ring.write(EventKind.GRANT, at + 400, 0, 0, task, 1, 10 + task, 1, 0, 0, 0);
                if (task < high) {
                    ring.write(EventKind.PREEMPT, at + 900, 0, 0, task, 1, 10 + task, 1, high, 0, 0);
                    ring.write(EventKind.DISABLE, at + 1_000, 0, 0, 0, 0, 10 + task, 1, at + 900, 100, 0);
                    ring.write(EventKind.ENABLE, at + 4_000, 0, 0, 0, 0, 10 + task, 1, at + 900, 100, 0);
                    ring.write(EventKind.RESUME, at + 4_000, 0, 0, task, 1, 10 + task, 1, 0, 0, 0);
                }
                ring.write(EventKind.ENFORCED, at + 4_500, 0, 0, task, 1, 10 + task, 1, 0, 0, 0);
                ring.write(EventKind.END, at + 9_000, 0, 0, task, 1, 10 + task, 1, at + 8_900, 0, 0);
                ring.write(EventKind.JOB_END, at + 9_100, 0, 0, task, 1, 10 + task, 1, at + 9_000, 9_500, 0);
            }
            agent.drain();
        }
        return all;
    }

    /** Bytes that the model allocates for an event once it has seen all kinds of them. */
    private double bytesPerEvent(final EventTap model) {
        events(true).forEach(model::onEvent);
        final List<JournalEvent> period = events(false);
        long bytes = 0;
        for (int part = 0; part < PARTS; part++) {   // the first ones compile, and fill what is bounded
            final long before = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
            for (int round = 0; round < ROUNDS; round++) {
                for (int i = 0; i < period.size(); i++) {
                    model.onEvent(period.get(i));
                }
            }
            bytes = THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
        }
        return bytes / ((double) ROUNDS * period.size());
    }

    @Test
    void shouldTakeLittleMemoryForEachEventAndInAll() {
        final LiveModel alone = new LiveModel();
        final double modelBytes = bytesPerEvent(alone);
        final LiveModel shown = new LiveModel();
        final double bothBytes;
        try (PrometheusExporter exporter = new PrometheusExporter(shown, new NoReadings(), Endpoint.anyPort())) {
            bothBytes = bytesPerEvent(shown);
            assertTrue(exporter.endpoint().port() > 0, "it listens");
        }
        System.out.printf("metrics: %.3f bytes per event for top and live, %.3f with Prometheus; %d KiB for %d tasks%n",
            modelBytes, bothBytes, alone.bytes() >> 10, TASKS);
        assertTrue(modelBytes < LIMIT_BYTES, modelBytes + " bytes per event");
        assertTrue(bothBytes < SHOWN_LIMIT_BYTES, bothBytes + " bytes per event");
        assertTrue(alone.bytes() < 4 << 20, alone.bytes() + " bytes");
    }
}
