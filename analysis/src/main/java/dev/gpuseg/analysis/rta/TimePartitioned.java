/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyAnalysis;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.TimePartitions;
import java.util.Objects;
import java.util.Optional;
import java.util.function.ToIntFunction;

/**
 * Time partitions as the daemon runs them: inside the windows of its partition a task shares the GPU only with the
 * tasks of that partition, by fixed priority or by deadline; outside of them it has no GPU. All tasks share the cores.
 *
 * <p>Hypotheses (theorem 6 of {@code docs/partitions.md}): those of {@link GcapsWindow} (inside fp) or
 * {@link EdfWindow} (inside edf) for the tasks of each partition and GPU, with suspended threads; the table of windows
 * is that of the daemon.
 *
 * <p>Recurrence: that of the inner analysis with each pair of GPU and partition as a GPU of its own; the least w for
 * which {@code w - Z(w)} is at least its right-hand side, Z(w) = the most time that the partition can be closed in an
 * interval of w, each opening longer by two updates. A task without GPU segments has Z = 0.
 *
 * <p>Source: this project. The supply-bound function of a static table is that of Mok, Feng and Chen (RTAS 2001).
 */
public final class TimePartitioned implements Analysis {
    private final TimePartitions table;
    private final ToIntFunction<String> partitionOf;
    final FixedPointAnalysis<?> inside;
    private final String name;

    /**
     * An analysis for one table.
     *
     * @param table       windows, guard, inner policy
     * @param partitionOf the partition of a task by its name, 0 = none
     * @param edfCores    whether the cores go by deadline too, with inside edf only
     * @throws IllegalArgumentException if no analysis is proven for what decides inside a window, with the remedy
     */
    public TimePartitioned(final TimePartitions table, final ToIntFunction<String> partitionOf,
        final boolean edfCores) {
        this.table = Objects.requireNonNull(table, "table");
        this.partitionOf = Objects.requireNonNull(partitionOf, "partitionOf");
        final Optional<String> proven = PolicyCatalog.builtIn().find(table.inner().name())
            .flatMap(row -> row.analysis(PolicyAnalysis.Level.INTERRUPT, edfCores ? PolicyAnalysis.Cores.DEADLINE
                : PolicyAnalysis.Cores.PRIORITY, PolicyAnalysis.Waiting.SUSPEND, false));
        if (proven.isPresent() && Analyses.get(proven.get()) instanceof FixedPointAnalysis<?> analysis) {
            inside = analysis;
            name = "partition-" + proven.get().replace("gcaps-window", "fp");
        } else if (edfCores) {
            throw new IllegalArgumentException("cores by deadline and " + table.inner().name() + " inside the windows "
                + "of partitions have no sound analysis; use inside: edf, or cores by priority");
        } else {
            throw new IllegalArgumentException("policy " + table.inner().name() + " inside the windows of partitions "
                + "has no sound analysis; use inside: fp or edf");
        }
    }

    /**
     * The same for other tasks.
     *
     * @param partitions the partition of a task by its name, 0 = none
     * @return an analysis by the same table
     */
    public TimePartitioned with(final ToIntFunction<String> partitions) {
        return new TimePartitioned(table, partitions, inside.name().startsWith("edf-edf"));
    }

    /**
     * Whether a partition has any time.
     *
     * @param partition 0..255
     * @return false if no window of the table is its own (0: if the windows leave no gap)
     */
    public boolean opens(final int partition) {
        return Supply.of(table, partition, 0).timeFor(1) != Long.MAX_VALUE;
    }

    /** What decides inside a window; fp or edf. */
    public Policy inner() {
        return table.inner();
    }

    @Override
    public AnalysisDescription description() {
        return Analyses.describe(name);
    }

    @Override
    public boolean needsPriorities() {
        return inside.needsPriorities();
    }

    @Override
    public AnalysisResult analyse(final TaskSet set) {
        if (set.mode() != WaitMode.SUSPEND) {
            throw new InvalidModelException("task set \"" + set.id() + "\": mode is busy; a thread that spins while "
                + "its partition is closed blocks its core, for which there is no analysis; use mode: suspend");
        }
        return Analysis.super.analyse(set);
    }

    @Override
    public AnalysisResult analyse(final PreparedSet set) {
        final AnalysisResult result = inside.analyse(partitioned(set));
        return new AnalysisResult(name, result.taskSetId(), result.schedulable(), result.tasks());
    }

    @Override
    public boolean isSchedulable(final PreparedSet set) {
        return inside.isSchedulable(partitioned(set));
    }

    /** The set as the analysis inside sees it. */
    PreparedSet partitioned(final PreparedSet set) {
        final int[] partition = new int[set.count];
        for (int p = 0; p < set.count; p++) {
            partition[p] = partitionOf.applyAsInt(set.set.tasks().get(set.index[p]).name());
            if (partition[p] < 0 || partition[p] > TimePartitions.PARTITIONS_MAX) {
                throw new InvalidModelException("task \"" + set.set.tasks().get(set.index[p]).name()
                    + "\": partition is " + partition[p] + "; it must be 0.." + TimePartitions.PARTITIONS_MAX);
            }
        }
        return set.partitioned(table, partition);
    }
}
