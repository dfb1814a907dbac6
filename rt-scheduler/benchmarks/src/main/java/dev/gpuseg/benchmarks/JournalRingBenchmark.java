/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * What an event costs the dispatcher: the write to the ring, while there is room. The journal's thread empties the ring
 * between the timed stretches, so that its work is not counted and the ring is never full.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class JournalRingBenchmark {
    private static final int EVENTS = 1024;

    private Path directory;
    private JournalRing ring;
    private JournalAgent agent;
    private long timeNs;

    /**
     * Opens ring and journal.
     *
     * @throws IOException if the directory cannot be made
     */
    @Setup
    public void open() throws IOException {
        directory = Files.createTempDirectory("gpuseg-jmh-");
        ring = new JournalRing(directory.resolve("ring"), JournalRing.DEFAULT_CAPACITY);
        agent = new JournalAgent(ring, directory.resolve("journal"), 64L << 20);
    }

    /** Makes room; not timed. */
    @Setup(Level.Invocation)
    public void drain() {
        agent.drain();
    }

    /**
     * Closes and deletes them.
     *
     * @throws IOException if something cannot be deleted
     */
    @TearDown
    public void close() throws IOException {
        if (ring.dropped() > 0) {
            throw new IllegalStateException(ring.dropped() + " events did not fit: that is not what is measured");
        }
        agent.close();
        ring.close();
        try (Stream<Path> all = Files.walk(directory)) {
            for (final Path path : all.sorted(Comparator.reverseOrder()).toList()) {
                Files.delete(path);
            }
        }
    }

    /** Events without text, as on the hot path. */
    @Benchmark
    @OperationsPerInvocation(EVENTS)
    public void write() {
        for (int i = 0; i < EVENTS; i++) {
            ring.write(EventKind.BEGIN, ++timeNs, 0, 1, i, timeNs, 1, 1, timeNs, timeNs, timeNs);
        }
    }
}
