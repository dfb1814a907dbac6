/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks;

import dev.gpuseg.analysis.generate.Experiment;
import dev.gpuseg.analysis.generate.TaskSetGenerator;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.PreparedSet;
import java.util.List;
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

/** Task sets per second of one core, on 1,000 sets of the default generator (Table 3 of the GCAPS paper). */
@State(Scope.Thread)
@BenchmarkMode(Mode.Throughput)
@OutputTimeUnit(TimeUnit.SECONDS)
@Warmup(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(1)
public class AnalysisBenchmark {
    private static final int SETS = 1_000;

    /** Which analyses; {@code twelve} runs the twelve of a sweep point on each set. */
    @Param({"gcaps-suspend", "gcaps-busy", "gcaps-window-suspend", "mpcp-suspend", "twelve"})
    public String analysis;

    private final TaskSet[] sets = new TaskSet[SETS];
    private final PreparedSet[] prepared = new PreparedSet[SETS];
    private List<Analysis> analyses;

    /** Generates the sets. */
    @Setup
    public void setUp() {
        final TaskSetGenerator generator = new TaskSetGenerator(Experiment.published(Experiment.Variant.AS_CODED));
        for (int i = 0; i < SETS; i++) {
            sets[i] = generator.generate(1, 0, i);
            prepared[i] = PreparedSet.of(sets[i]);
        }
        analyses = analysis.equals("twelve") ? Analyses.inFigures() : List.of(Analyses.get(analysis));
    }

    /** The verdict on prepared sets: accepted verdicts, so that the work is not optimised away. */
    @Benchmark
    @OperationsPerInvocation(SETS)
    public int verdict() {
        int accepted = 0;
        for (final PreparedSet set : prepared) {
            for (final Analysis one : analyses) {
                accepted += one.isSchedulable(set) ? 1 : 0;
            }
        }
        return accepted;
    }

    /** The same with the preparation of each set. */
    @Benchmark
    @OperationsPerInvocation(SETS)
    public int prepareAndVerdict() {
        int accepted = 0;
        for (final TaskSet set : sets) {
            final PreparedSet one = PreparedSet.of(set);
            for (final Analysis each : analyses) {
                accepted += each.isSchedulable(one) ? 1 : 0;
            }
        }
        return accepted;
    }
}
