/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.util.concurrent.TimeUnit;
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

/** What the dispatcher pays to look at queues: empty ones, and records read, copied and validated. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class QueueBenchmark {
    private static final int QUEUES = 16;
    private static final int RECORDS = 3_600;
    private static final int BYTES = 1 << 19;

    private QueueRig rig;
    private final ClientQueue[] empty = new ClientQueue[QUEUES];
    private ClientQueue full;
    private long sum;
    private final RecordHandler handler = (client, record) -> sum += record.seq();

    /** Makes the queues. */
    @Setup
    public void open() {
        rig = new QueueRig(BYTES);
        for (int i = 0; i < QUEUES; i++) {
            empty[i] = rig.add();
        }
    }

    /** Another rig, or the files would add up. */
    @Setup(Level.Iteration)
    public void renew() {
        rig.close();
        open();
    }

    /** Fills a queue; not timed. */
    @Setup(Level.Invocation)
    public void fill() {
        if (full == null || full.records() > 0) {
            full = rig.add();
            full.openTask(1);
            final QueueRig.Raw raw = rig.raw(full);
            for (int i = 1; i <= RECORDS; i++) {
                raw.record(QueueRig.record(i % 2 == 1 ? Abi.RECORD_BEGIN : Abi.RECORD_END, 0, 1, i, (i + 1) / 2, 1,
                    0, 0));
            }
        }
    }

    /** Deletes the queues. */
    @TearDown
    public void close() {
        rig.close();
    }

    /** A look at one queue of sixteen in turn, as a cycle does. */
    @Benchmark
    @OperationsPerInvocation(QUEUES)
    public void emptyPoll() {
        for (final ClientQueue queue : empty) {
            queue.poll(handler, 16, 1);
        }
    }

    /** A record, from the queue to the handler. */
    @Benchmark
    @OperationsPerInvocation(RECORDS)
    public long readAndValidate() {
        for (int n = 0; n < RECORDS;) {
            n += full.poll(handler, 64, 1);
        }
        if (full.poisonCode() != 0) {
            throw new IllegalStateException(rig.dump());
        }
        return sum;
    }
}
