/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import net.openhft.chronicle.core.time.SetTimeProvider;
import net.openhft.chronicle.queue.ExcerptAppender;
import net.openhft.chronicle.queue.impl.single.SingleChronicleQueue;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * How long a client cannot append while a queue rolls. Ours: the time for which the queue's lock is held, shown as
 * {@code heldNs} of {@link #ours} (its score is the way to the roll and means nothing). Chronicle's own: the append
 * that rolls, the score of {@link #chronicles}.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.SingleShotTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 10)
@Measurement(iterations = 40)
@Fork(1)
public class RollBenchmark {
    private static final int ROLLED_AT_PERCENT = 60;

    private QueueRig rig;
    private ClientQueue queue;
    private long seq;
    private int cycle;
    private final SetTimeProvider time = new SetTimeProvider(0);
    private SingleChronicleQueue plain;
    private ExcerptAppender appender;

    /** What JMH reports beside the score. */
    @AuxCounters(AuxCounters.Type.EVENTS)
    @State(Scope.Thread)
    public static class Held {
        /** For how long the lock was held, ns. */
        public long heldNs;
    }

    /** Makes both queues. */
    @Setup
    public void open() {
        rig = new QueueRig(ClientQueue.BYTES_MIN);
        queue = rig.add();
        queue.openTask(1);
        final Path directory = rig.root.resolve("plain");
        plain = QueueTemplate.builder(directory, ClientQueue.BYTES_MIN).timeProvider(time).build();
        appender = plain.createAppender();
    }

    /** A document in the current cycle, then the next day begins; not timed. */
    @Setup(Level.Invocation)
    public void nextDay() {
        appender.writeBytes(bytes -> bytes.writeLong(1));
        time.advanceNanos(QueueFormat.DAY_NS);
    }

    /** Deletes them. */
    @TearDown
    public void close() {
        appender.close();
        plain.close();
        rig.close();
    }

    /**
     * Fills a cycle until it is rolled.
     *
     * @param held receives the time of the lock
     */
    @Benchmark
    public void ours(final Held held) throws InterruptedException {
        final QueueRig.Raw raw = new QueueRig.Raw(QueueRig.file(queue, cycle), rig.template.cycle().length);
        while (queue.usagePercent() < ROLLED_AT_PERCENT) {
            raw.record(QueueRig.record(Abi.RECORD_HINT, 0, 1, ++seq, 0, 1, 0, 0));
            queue.poll((client, record) -> { }, 8, 1);
        }
        while (queue.rolls() == cycle) {   // a record written now, without the lock, could land on the end
            queue.poll((client, record) -> { }, 8, 1);
            Thread.sleep(1);
        }
        held.heldNs = queue.lastRollNs();
        queue.poll((client, record) -> { }, 8, 1);
        Thread.sleep(3);   // housekeeping deletes the old one
        cycle++;
    }

    /** The append after which the file of the day before is ended and another is made. */
    @Benchmark
    public void chronicles() {
        appender.writeBytes(bytes -> bytes.writeLong(1));
    }
}
