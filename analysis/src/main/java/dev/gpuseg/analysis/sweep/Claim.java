/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.analysis.sim.SimulationOptions.CpuPolicy;
import dev.gpuseg.analysis.sim.SimulationOptions.Hold;
import dev.gpuseg.analysis.sim.SimulationOptions.Scheduler;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A bound and the mechanism it is compared with.
 *
 * @param analysis  the bound
 * @param mechanism what is simulated
 * @param claimed   true if no response may exceed the bound; false where the comparison shows what an unsound bound
 *                  costs
 */
public record Claim(Analysis analysis, Mechanism mechanism, boolean claimed) {
    /**
     * What is simulated.
     *
     * @param scheduler of the GPU
     * @param cpuPolicy of the cores
     * @param hold      what holds the GPU
     */
    public record Mechanism(Scheduler scheduler, CpuPolicy cpuPolicy, Hold hold) {
        /** A number of its own for each mechanism, for seeds. */
        int number() {
            return 100 * scheduler.ordinal() + 10 * cpuPolicy.ordinal() + hold.ordinal();
        }

        @Override
        public String toString() {
            return scheduler.word() + "/" + cpuPolicy.name().toLowerCase(Locale.ROOT) + "/"
                + hold.name().toLowerCase(Locale.ROOT);
        }
    }

    private static final Mechanism WINDOW = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism BOOST = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.BOOST);
    private static final Mechanism CEILING = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.CEILING);
    private static final Mechanism GATE = new Mechanism(Scheduler.GATE, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism LOCK = new Mechanism(Scheduler.GATE, CpuPolicy.FP, Hold.BOOST);
    private static final Mechanism SHARED = new Mechanism(Scheduler.RR, CpuPolicy.FP, Hold.WINDOW);
    private static final Mechanism ABSTRACT = new Mechanism(Scheduler.FP, CpuPolicy.FP, Hold.ABSTRACT);

    /**
     * All comparisons.
     *
     * @return claims of soundness first
     */
    public static List<Claim> all() {
        final List<Claim> claims = new ArrayList<>();
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-window-" + mode), WINDOW, true));
            claims.add(new Claim(Analyses.get("gcaps-boost-" + mode), BOOST, true));
            claims.add(new Claim(Analyses.get("gate-" + mode), GATE, true));
            claims.add(new Claim(Analyses.get("edf-edf-" + mode), new Mechanism(Scheduler.EDF, CpuPolicy.EDF,
                Hold.WINDOW),
                true));
        }
        claims.add(new Claim(Analyses.get("edf-fp-suspend"), new Mechanism(Scheduler.EDF, CpuPolicy.FP, Hold.WINDOW),
            true));
        claims.add(new Claim(Analyses.get("gcaps-boost-suspend"), CEILING, true));
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-" + mode), ABSTRACT, false));
            claims.add(new Claim(Analyses.get("gcaps-" + mode), WINDOW, false));
            claims.add(new Claim(Analyses.get("tsg-rr-" + mode), SHARED, false));
            claims.add(new Claim(Analyses.get("mpcp-" + mode), LOCK, false));
        }
        claims.add(new Claim(Analyses.get("gcaps-suspend-capped"), ABSTRACT, false));
        claims.add(new Claim(Analyses.get("gcaps-busy-printed"), ABSTRACT, false));
        return List.copyOf(claims);
    }

    /**
     * Time partitions, with a table of its own for every set.
     *
     * @return claims of soundness
     */
    public static List<Claim> partitions() {
        return List.of(partitioned(FixedPriority.INSTANCE, CpuPolicy.FP),
            partitioned(EarliestDeadlineFirst.INSTANCE, CpuPolicy.FP),
            partitioned(EarliestDeadlineFirst.INSTANCE, CpuPolicy.EDF));
    }

    /** Time partitions against a bound that knows nothing of them. */
    static Claim partitionsLeftOut() {
        return new Claim(Analyses.get("gcaps-window-suspend"), new Mechanism(Scheduler.PARTITIONS, CpuPolicy.FP,
            Hold.WINDOW), false);
    }

    private static Claim partitioned(final Policy inner, final CpuPolicy cores) {
        final TimePartitions whole = new TimePartitions(inner, 1, 0, 0, false, new TimePartitions.Window(1, 0, 1));
        return new Claim(new TimePartitioned(whole, task -> 1, cores == CpuPolicy.EDF),
            new Mechanism(Scheduler.PARTITIONS, cores, Hold.WINDOW), true);
    }

    /** The analysis as it stands for one set: with time partitions, by the table of that set. */
    Analysis analysisOf(final TaskSet set) {
        return analysis instanceof TimePartitioned ? new TimePartitioned(table(set),
            task -> PartitionTables.partition(set, task), mechanism.cpuPolicy() == CpuPolicy.EDF) : analysis;
    }

    /** Tells a simulator what is not in the set. */
    void configure(final TaskSet set, final Simulator simulator) {
        if (mechanism.scheduler() == Scheduler.PARTITIONS) {
            PartitionTables.apply(set, table(set), simulator);
        }
    }

    private TimePartitions table(final TaskSet set) {
        return PartitionTables.of(set, analysis instanceof TimePartitioned p ? p.inner() : FixedPriority.INSTANCE);
    }

    /**
     * What the bound for spinning threads would have to hold for, if the boost lasted from begin to end.
     *
     * @return a comparison that shows why it is not used for that
     */
    static Claim spinningAtACeiling() {
        return new Claim(Analyses.get("gcaps-boost-busy"), CEILING, false);
    }

    /**
     * The published bounds and this project's against whole windows.
     *
     * @return for each mode the published bound, the window bound and the boost bound
     */
    static List<Claim> gap() {
        final List<Claim> claims = new ArrayList<>();
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(new Claim(Analyses.get("gcaps-" + mode), WINDOW, false));
            claims.add(new Claim(Analyses.get("gcaps-window-" + mode), WINDOW, true));
            claims.add(new Claim(Analyses.get("gcaps-boost-" + mode), BOOST, true));
        }
        return List.copyOf(claims);
    }

    /**
     * Name for tables.
     *
     * @return analysis and mechanism
     */
    public String title() {
        return analysis.name() + " @ " + mechanism;
    }
}
