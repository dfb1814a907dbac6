/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventTap;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.ObjLongConsumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What one event costs on the journal's thread, and how much memory the figures take. Prints both. */
@Timeout(120)
class MetricsCostTest {
    private static final int TASKS = 8;
    private static final int ROUNDS = 40_000;
    /** A journal's thread with this load could still take 100,000 events a second. */
    private static final long LIMIT_NS = 10_000;

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

    private double nsPerEvent(final EventTap model) {
        events(true).forEach(model::onEvent);
        final List<JournalEvent> period = events(false);
        double best = Double.MAX_VALUE;
        for (int part = 0; part < 8; part++) {   // the first ones compile; the machine may be busy in others
            final long startNs = System.nanoTime();
            for (int round = 0; round < ROUNDS / 8; round++) {
                for (int i = 0; i < period.size(); i++) {
                    model.onEvent(period.get(i));
                }
            }
            best = Math.min(best, (System.nanoTime() - startNs) / ((double) ROUNDS / 8 * period.size()));
        }
        return best;
    }

    @Test
    void shouldTakeLittleTimeOnTheJournalsThreadAndLittleMemory() {
        final LiveModel alone = new LiveModel();
        final double modelNs = nsPerEvent(alone);
        final LiveModel shown = new LiveModel();
        final double bothNs;
        try (PrometheusExporter exporter = new PrometheusExporter(shown, new NoReadings(), Endpoint.anyPort())) {
            bothNs = nsPerEvent(shown);
            assertTrue(exporter.endpoint().port() > 0, "it listens");
        }
        System.out.printf("metrics: %.0f ns per event for top and live, %.0f ns with Prometheus; %d KiB for %d tasks%n",
            modelNs, bothNs, alone.bytes() >> 10, TASKS);
        assertTrue(modelNs < LIMIT_NS, modelNs + " ns per event");
        assertTrue(bothNs < LIMIT_NS, bothNs + " ns per event");
        assertTrue(alone.bytes() < 4 << 20, alone.bytes() + " bytes");
    }
}
