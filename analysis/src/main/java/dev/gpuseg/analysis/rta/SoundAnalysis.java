/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.PolicyAnalysis;
import dev.gpuseg.core.PolicyAnalysis.Cores;
import dev.gpuseg.core.PolicyAnalysis.Level;
import dev.gpuseg.core.PolicyAnalysis.Waiting;
import dev.gpuseg.core.PolicyCatalog;
import dev.gpuseg.core.PolicyDescription;
import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.core.TimePartitions;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Which analysis holds for a policy on a mechanism, or why none does.
 *
 * @param analysis the analysis, of claim {@link Analysis.Claim#SOUND}; null if there is none
 * @param reason   one line: why there is none, and what to do; empty if there is one
 * @param boosted  the one for tasks whose threads run at a CPU ceiling inside their windows, or why there is none; null
 *                 in that one
 * @param turns    whether begins that wait for no driver call have one, too
 */
public record SoundAnalysis(Analysis analysis, String reason, SoundAnalysis boosted, boolean turns) {
    /** Contexts are disabled and enabled while their kernels run; a level of enforcement. */
    private static final int LEVEL_INTERRUPT = 3;
    /** Begins wait; what runs is not preempted. */
    private static final int LEVEL_GATE = 1;

    /**
     * Chooses among the analyses of the policy's row.
     *
     * @param policy what decides, with its parameters
     * @param level  of enforcement: 3 interrupts running work, 1 lets begins wait
     * @param mode   what threads do while the GPU works for them
     * @param cores  how the kernel orders the threads of a core
     * @param interrupting the mechanisms of level 3, as a sentence lists them
     * @return the analysis, or the reason why there is none
     */
    public static SoundAnalysis of(final Policy policy, final int level, final WaitMode mode, final CoreOrder cores,
        final String interrupting) {
        final List<PolicyAnalysis> proven = proven(policy);
        if (proven.isEmpty()) {
            return none("policy " + policy.name() + " has no sound analysis; use " + analysed()
                + ", or --admission off");
        }
        if (cores == CoreOrder.EDF && mode == WaitMode.SUSPEND) {
            return none("SCHED_DEADLINE postpones the deadline of a thread that wakes, so cores by deadline have no "
                + "sound analysis for threads that suspend; use core-order: fp");
        }
        if (policy.timetable().isPresent()) {
            return inWindows(policy.timetable().get(), level, mode, cores, interrupting);
        }
        if (level != LEVEL_INTERRUPT && level != LEVEL_GATE) {
            return none("a mechanism of level " + level + " has no sound analysis; use one of level 3 (" + interrupting
                + ") or 1 (gate), or --admission off");
        }
        final Wanted wanted = new Wanted(level == LEVEL_GATE ? Level.GATE : Level.INTERRUPT,
            cores == CoreOrder.EDF ? Cores.DEADLINE : Cores.PRIORITY,
            mode == WaitMode.BUSY ? Waiting.BUSY : Waiting.SUSPEND, false);
        final boolean turns = proven.stream().anyMatch(a -> a.name().equals(Analyses.byTurns().name())
            && a.level() == wanted.level() && a.cores() == wanted.cores() && a.waiting() == wanted.waiting());
        return wanted.in(proven).map(name -> some(name, boosted(proven, wanted, interrupting), turns))
            .orElseGet(() -> none(missing(policy, proven, wanted)));
    }

    /**
     * Those of the policy's row, or those for level 3 of the policy that it equals, which {@link SharedClasses}
     * restricts.
     */
    private static List<PolicyAnalysis> proven(final Policy policy) {
        final PolicyCatalog catalog = PolicyCatalog.builtIn();
        final Optional<PolicyDescription> row = catalog.find(policy.name());
        return row.flatMap(own -> policy.exclusiveAs()).map(other -> catalog.get(other).analyses().stream()
            .filter(a -> a.level() == Level.INTERRUPT).toList())
            .orElseGet(() -> row.map(PolicyDescription::analyses).orElse(List.of()));
    }

    /** Under which conditions an analysis has to hold. */
    private record Wanted(Level level, Cores cores, Waiting waiting, boolean boosted) {
        Optional<String> in(final List<PolicyAnalysis> proven) {
            return proven.stream().filter(a -> a.level() == level && a.cores() == cores
                && a.waiting() == waiting && a.boosted() == boosted).map(PolicyAnalysis::name).findFirst();
        }
    }

    /** The policies with an analysis that needs no table, as a sentence lists them. */
    private static String analysed() {
        return PolicyCatalog.builtIn().all().stream().filter(row -> row.hasDefaults() && !row.analyses().isEmpty())
            .map(PolicyDescription::name).collect(Collectors.joining(" or "));
    }

    private static String missing(final Policy policy, final List<PolicyAnalysis> proven, final Wanted wanted) {
        if (proven.stream().noneMatch(a -> a.level() == wanted.level())) {
            return "policy " + policy.name() + " behind a gate (level 1) has no sound analysis; use policy "
                + PolicyCatalog.builtIn().standard().name() + ", or a mechanism of level 3";
        }
        final boolean byDeadline = policy.ordering().needs().contains(TaskNeed.DEADLINE);
        if (byDeadline && wanted.cores() == Cores.PRIORITY && wanted.waiting() == Waiting.BUSY) {
            return "threads that spin (mode: busy) under deadlines on the GPU and fixed priorities on the cores can "
                + "deadlock: a thread spins for the GPU on the core that the GPU's holder needs; use mode: suspend, "
                + "policy fp, or SCHED_DEADLINE threads with core-order: edf";
        }
        return "cores by " + wanted.cores().name().toLowerCase(Locale.ROOT) + " and threads that "
            + (wanted.waiting() == Waiting.BUSY ? "spin" : "suspend") + " have no sound analysis under policy "
            + policy.name() + "; use core-order: fp" + (byDeadline ? "" : ", or policy edf");
    }

    private static SoundAnalysis inWindows(final TimePartitions table, final int level, final WaitMode mode,
        final CoreOrder cores, final String interrupting) {
        if (level != LEVEL_INTERRUPT) {
            return none("time partitions have a sound analysis with a mechanism of level 3 only (" + interrupting
                + "), which preempts running work at the end of a window; use one, or --admission off");
        }
        if (mode == WaitMode.BUSY) {
            return none("threads that spin (mode: busy) while their partition is closed keep their cores from "
                + "all others, for which there is no sound analysis; use mode: suspend");
        }
        try {
            return new SoundAnalysis(new TimePartitioned(table, task -> 0, cores == CoreOrder.EDF), "",
                none("a boost inside windows has no sound analysis under time partitions; open the task without one"),
                false);
        } catch (final IllegalArgumentException e) {
            return none(e.getMessage());
        }
    }

    /** The threads keep their boost from begin to end, also while another window has the GPU. */
    private static SoundAnalysis boosted(final List<PolicyAnalysis> proven, final Wanted plain,
        final String interrupting) {
        final Wanted wanted = new Wanted(plain.level(), plain.cores(), plain.waiting(), true);
        final Optional<String> name = wanted.in(proven);
        if (name.isPresent()) {
            return some(name.get(), null, false);
        }
        if (wanted.waiting() == Waiting.BUSY
            && proven.stream().anyMatch(a -> a.boosted() && a.level() == wanted.level())) {
            return none("threads that spin (mode: busy) at a boost keep their cores while others have the GPU, for "
                + "which there is no sound analysis; use mode: suspend, or open the task without a boost");
        }
        return none("a boost inside windows has a sound analysis under policy fp or edf with core-order: fp and a "
            + "mechanism of level 3 only (" + interrupting + "); open the task without one");
    }

    private static SoundAnalysis some(final String name, final SoundAnalysis boosted, final boolean turns) {
        final Analysis analysis = Analyses.get(name);
        if (analysis.claim() != Analysis.Claim.SOUND) {
            throw new IllegalStateException("analysis " + name + " is not sound for this scheduler");
        }
        return new SoundAnalysis(analysis, "", boosted, turns);
    }

    /**
     * There is none.
     *
     * @param reason one line: why, and what to do
     * @return the answer
     */
    public static SoundAnalysis none(final String reason) {
        return new SoundAnalysis(null, reason, null, false);
    }

    /** Whether there is an analysis. */
    public boolean exists() {
        return analysis != null;
    }
}
