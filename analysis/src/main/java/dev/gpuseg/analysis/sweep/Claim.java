/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.Model;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.analysis.rta.TurnSlices;
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
 * @param claimed   true if no response may exceed the bound; false if the comparison shows by how much an unsound
 *                  bound is exceeded
 */
public record Claim(Analysis analysis, Simulated mechanism, boolean claimed) {
    /**
     * What is simulated.
     *
     * @param scheduler of the GPU
     * @param cpuPolicy of the cores
     * @param hold      what holds the GPU
     */
    public record Simulated(Scheduler scheduler, CpuPolicy cpuPolicy, Hold hold) {
        /** What an analysis describes. */
        static Simulated of(final Model model) {
            return new Simulated(model.scheduler(), model.cores(), model.hold());
        }

        /** A different number for each mechanism, for seeds. */
        int number() {
            return 100 * scheduler.ordinal() + 10 * cpuPolicy.ordinal() + hold.ordinal();
        }

        @Override
        public String toString() {
            return scheduler.word() + "/" + cpuPolicy.name().toLowerCase(Locale.ROOT) + "/"
                + hold.name().toLowerCase(Locale.ROOT);
        }
    }

    private static final Simulated WINDOW = Simulated.of(Model.WINDOWS);
    private static final Simulated BOOST = Simulated.of(Model.BOOSTED_WINDOWS);
    private static final Simulated CEILING = new Simulated(Scheduler.FP, CpuPolicy.FP, Hold.CEILING);
    private static final Simulated DEADLINE_CEILING = new Simulated(Scheduler.EDF, CpuPolicy.FP, Hold.CEILING);

    /**
     * All comparisons: every analysis of the catalogue with the schedule that it describes, and some with what really
     * runs.
     *
     * @return claims of soundness first
     */
    public static List<Claim> all() {
        final List<Claim> claims = new ArrayList<>();
        final List<Analysis> sound = Analyses.all().stream().filter(Claim::isProven).toList();
        for (final WaitMode mode : WaitMode.values()) {
            sound.stream().filter(a -> a.mode() == mode && !onlySuspends(a)).forEach(a -> claims.add(ofModel(a)));
        }
        sound.stream().filter(Claim::onlySuspends).forEach(a -> claims.add(ofModel(a)));
        for (final String name : List.of("gcaps-boost-suspend", "gcaps-boost-tight-suspend")) {
            claims.add(new Claim(Analyses.get(name), CEILING, true));
        }
        claims.add(new Claim(Analyses.get("edf-boost-suspend"), DEADLINE_CEILING, true));
        for (final String mode : List.of("suspend", "busy")) {
            claims.add(ofModel(Analyses.get("gcaps-" + mode)));
            claims.add(new Claim(Analyses.get("gcaps-" + mode), WINDOW, false));
            claims.add(ofModel(Analyses.get("tsg-rr-" + mode)));
            claims.add(ofModel(Analyses.get("mpcp-" + mode)));
        }
        claims.add(ofModel(Analyses.get("gcaps-suspend-capped")));
        claims.add(ofModel(Analyses.get("gcaps-busy-printed")));
        return List.copyOf(claims);
    }

    /** An analysis with the schedule that it describes; claimed if its bounds are sound for it. */
    private static Claim ofModel(final Analysis analysis) {
        return new Claim(analysis, Simulated.of(analysis.description().model()),
            isProven(analysis));
    }

    /** Whether no response of the mechanism that the analysis describes may exceed a bound. */
    private static boolean isProven(final Analysis analysis) {
        return analysis.claim() == Analysis.Claim.SOUND || analysis.claim() == Analysis.Claim.PROVEN_ELSEWHERE;
    }

    /** Whether no analysis of the same model takes threads to spin. */
    private static boolean onlySuspends(final Analysis analysis) {
        return Analyses.all().stream().noneMatch(a -> a.mode() == WaitMode.BUSY && isProven(a)
            && a.description().model() == analysis.description().model());
    }

    /** Claims of soundness of time partitions, with a separate table for every set. */
    public static List<Claim> partitions() {
        return List.of(partitioned(FixedPriority.INSTANCE, CpuPolicy.FP),
            partitioned(EarliestDeadlineFirst.INSTANCE, CpuPolicy.FP),
            partitioned(EarliestDeadlineFirst.INSTANCE, CpuPolicy.EDF));
    }

    /** Turns and time slices, for sets whose platform states them. */
    public static List<Claim> turns() {
        return Analyses.withStatedTurns().stream().map(Claim::ofModel).toList();
    }

    /** Time partitions against a bound that ignores them. */
    static Claim partitionsLeftOut() {
        return new Claim(Analyses.get("gcaps-window-suspend"), Simulated.of(Model.PARTITIONS), false);
    }

    private static Claim partitioned(final Policy inner, final CpuPolicy cores) {
        final TimePartitions whole = new TimePartitions(inner, 1, 0, 0, false, new TimePartitions.Window(1, 0, 1));
        return ofModel(new TimePartitioned(whole, task -> 1, cores == CpuPolicy.EDF));
    }

    /** The analysis for one set: for time partitions, one with the table of that set. */
    Analysis analysisOf(final TaskSet set) {
        return analysis instanceof TimePartitioned ? new TimePartitioned(table(set),
            task -> PartitionTables.partition(set, task), mechanism.cpuPolicy() == CpuPolicy.EDF) : analysis;
    }

    /**
     * Why a set is not compared: a hypothesis that it breaks, of the analysis or of the mechanism. (A mechanism whose
     * threads wait for each other without end has no responses.)
     *
     * @return one line; empty if it is compared
     */
    String conflict(final TaskSet set) {
        if (analysis.claim() != Analysis.Claim.SOUND && LimitedSets.stops(set)) {
            return analysis.name() + " does not contain stops of the GPU";
        }
        final String described = Hypotheses.conflict(analysisOf(set).description(), set);
        // a process is in one partition, and a random table puts its tasks into several
        final String conflict = described.isEmpty() && mechanism.scheduler() == Scheduler.PARTITIONS
            ? Hypotheses.conflict(Analyses.describe("partition-fp-suspend"), set) : described;
        return conflict.isEmpty() && mechanism.scheduler() == Scheduler.FP && mechanism.hold() != Hold.ABSTRACT
            && set.mode() == WaitMode.BUSY
            ? Hypotheses.conflict(Analyses.describe("gcaps-window-busy"), set) : conflict;
    }

    /** What is compared: turns need sets that state them. */
    TaskSet setOf(final TaskSet drawn, final long seed, final long k) {
        return mechanism.hold() == Hold.TURNS ? TurnSets.withTurns(drawn, seed, k) : drawn;
    }

    /** Gives a simulator what the set does not contain. */
    void configure(final TaskSet set, final Simulator simulator) {
        if (mechanism.scheduler() == Scheduler.PARTITIONS) {
            PartitionTables.apply(set, table(set), simulator);
        }
        if (mechanism.hold() == Hold.TURNS) {
            simulator.setSlices(TurnSlices.of(set));
        }
    }

    private TimePartitions table(final TaskSet set) {
        // by name: a test wraps the analysis
        return PartitionTables.of(set, analysis.name().startsWith("partition-edf") ? EarliestDeadlineFirst.INSTANCE
            : FixedPriority.INSTANCE);
    }

    /**
     * The bound for spinning threads against a boost that lasts from begin to end.
     *
     * @return a comparison that shows why the bound is not used for that mechanism
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

    /** Name for tables; analysis and mechanism. */
    public String title() {
        return analysis.name() + " @ " + mechanism;
    }
}
