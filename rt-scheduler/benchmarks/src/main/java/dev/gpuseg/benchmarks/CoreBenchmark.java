/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * ns per event of the scheduler core. Two events per invocation: a real-time segment begins, preempting the best of
 * those that are begun already, and ends again. The number of open tasks must make no difference, but for those whose
 * pre-grant or context changes with the segment: with 128 open ones that is nearly each of them, with 16384, sixteen
 * to a context, none is pre-granted. That of begun ones may (linearly).
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class CoreBenchmark {
    private static final int CONTEXTS = 1024;
    private static final int PREEMPTOR = 0;

    /** Policy that decides. */
    @Param({"fp", "edf"})
    public String policy;

    /** Open tasks; all but a few idle. */
    @Param({"128", "16384"})
    public int open;

    /** Segments begun beside the one that comes and goes. */
    @Param({"1", "8", "64"})
    public int begun;

    /** Whether contexts of idle higher-priority tasks stay enabled, as in the daemon. */
    @Param({"true", "false"})
    public boolean keepReady;

    private SegmentScheduler scheduler;
    private CountingSink sink;
    private long ticket;
    private long nowNs;

    /** Opens the tasks and begins the lower segments. */
    @Setup
    public void setUp() {
        sink = new CountingSink();
        scheduler = new SegmentScheduler(
            new SchedulerConfig(PolicyCatalog.builtIn().create(policy), 1, open, CONTEXTS, true, true,
                Unmanaged.BEST_EFFORT), sink);
        scheduler.setKeepReady(keepReady, 0);
        final int contexts = Math.min(open, CONTEXTS);
        for (int c = 0; c < contexts; c++) {
            scheduler.addContext(c, 0, ContextKind.MANAGED);
        }
        for (int t = 0; t < open; t++) {
            final int priority = t == PREEMPTOR ? 99 : 1 + t % 90;
            scheduler.addTask(new TaskParameters(t, t % contexts, priority, 0, t == PREEMPTOR ? 1_000 : 1L << 50, 0,
                true));
        }
        for (int t = 1; t <= begun; t++) {
            scheduler.begin(t, 1, 0, 0, false, t, t);
        }
        nowNs = begun;
    }

    /** A better segment begins and ends; returns something that depends on the decisions. */
    @Benchmark
    @OperationsPerInvocation(2)
    public long beginAndEnd() {
        nowNs += 100;
        scheduler.begin(PREEMPTOR, ++ticket, 0, 0, false, nowNs, nowNs);
        scheduler.end(PREEMPTOR, ticket, nowNs + 50);
        return sink.calls;
    }

    /** Counts, so that no decision can be optimised away. */
    private static final class CountingSink implements DecisionSink {
        private long calls;

        @Override
        public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
            calls++;
        }

        @Override
        public void onPreempt(final int gpu, final int taskId, final long ticket, final int byTaskId) {
            calls++;
        }

        @Override
        public void onResume(final int gpu, final int taskId, final long ticket) {
            calls++;
        }

        @Override
        public void onGrant(final int gpu, final int taskId, final long ticket) {
            calls++;
        }

        @Override
        public void onPregrant(final int taskId, final boolean pregranted) {
            calls++;
        }

        @Override
        public void onDeadlineMiss(final int taskId, final long ticket, final long deadlineNs) {
            calls++;
        }

        @Override
        public void onOverrun(final int taskId, final long ticket, final long budgetNs) {
            calls++;
        }
    }
}
