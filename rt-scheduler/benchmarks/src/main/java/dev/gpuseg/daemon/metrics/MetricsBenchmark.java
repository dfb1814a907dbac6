/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import dev.gpuseg.daemon.http.Endpoint;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalEvent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.ObjLongConsumer;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What one event costs the journal's thread: the model behind {@code top} and {@code live}, with and without
 * Prometheus. The score is for a period of {@value #EVENTS} events. At 100,000 events a second an event may take 10 us.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class MetricsBenchmark {
    /** Events of a period. */
    static final int EVENTS = 68;
    private static final int TASKS = 8;

    /** Whether Prometheus listens, too. */
    @Param({"false", "true"})
    public boolean prometheus;

    private Path directory;
    private int nextDirectory;
    private LiveModel model;
    private PrometheusExporter exporter;
    private List<JournalEvent> period;

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

    /**
     * Opens the tasks.
     *
     * @throws IOException if the directory cannot be made
     */
    @Setup
    public void open() throws IOException {
        directory = Files.createTempDirectory("gpuseg-jmh-");
        model = new LiveModel();
        if (prometheus) {
            exporter = new PrometheusExporter(model, new NoReadings(), Endpoint.anyPort());
        }
        events(true).forEach(model::onEvent);
        period = events(false);
        if (period.size() != EVENTS) {
            throw new IllegalStateException(period.size() + " events in a period");
        }
    }

    /**
     * Deletes what the events came from.
     *
     * @throws IOException if something cannot be deleted
     */
    @TearDown
    public void close() throws IOException {
        if (exporter != null) {
            exporter.close();
        }
        try (Stream<Path> all = Files.walk(directory)) {
            for (final Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
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

    /** One period. */
    @Benchmark
    public void period() {
        for (int i = 0; i < period.size(); i++) {
            model.onEvent(period.get(i));
        }
    }
}
