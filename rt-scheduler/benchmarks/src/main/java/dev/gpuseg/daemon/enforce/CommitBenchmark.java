/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What publishing a desired state costs the dispatcher, with and without the question whether the enforcer sleeps. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class CommitBenchmark {
    private final DesiredState desired = new DesiredState(3);
    private final SleepFlag parked = new SleepFlag();
    private boolean on;

    /** Two contexts change. */
    @Benchmark
    public long commit() {
        on = !on;
        desired.set(1, on);
        desired.set(2, !on);
        return desired.commit();
    }

    /** The same, then the look at the enforcer, which does not sleep: the difference is the fence. */
    @Benchmark
    public boolean commitAndKick() {
        commit();
        return parked.mustWake();
    }
}
