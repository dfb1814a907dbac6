/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.TimePartitioned;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.TimePartitions;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismCatalog;
import dev.gpuseg.mechanisms.MechanismDescription;
import java.util.stream.Collectors;

/**
 * Which analysis holds for a policy on a mechanism, or why none does.
 *
 * @param analysis the analysis, of claim {@link Analysis.Claim#SOUND}; null if there is none
 * @param reason   one line: why there is none, and what to do; empty if there is one
 * @param boosted  the one for tasks whose threads run at a CPU ceiling inside their windows, or why there is none; null
 *                 in that one
 */
public record SoundAnalysis(Analysis analysis, String reason, SoundAnalysis boosted) {
    /** The mechanisms of level 3, as a list in a sentence. */
    private static final String INTERRUPTING = MechanismCatalog.all().stream()
        .filter(row -> row.level() == Capabilities.INTERRUPT).map(MechanismDescription::name)
        .collect(Collectors.joining(", "));

    /**
     * Chooses for a policy with its parameters.
     *
     * @param policy what decides
     * @param level  as below
     * @param mode   as below
     * @param cores  as below
     * @return the analysis, or the reason why there is none
     */
    public static SoundAnalysis of(final Policy policy, final int level, final WaitMode mode, final CoreOrder cores) {
        if (!(policy instanceof TimePartitions table)) {
            return of(policy.name(), level, mode, cores);
        }
        if (level != Capabilities.INTERRUPT) {
            return none("time partitions have a sound analysis with a mechanism of level 3 only (" + INTERRUPTING
                + "), which preempts running work at the end of a window; use one, or --admission off");
        }
        if (mode == WaitMode.BUSY) {
            return none("threads that spin (mode: busy) while their partition is closed keep their cores from "
                + "everybody, for which there is no sound analysis; use mode: suspend");
        }
        try {
            return new SoundAnalysis(new TimePartitioned(table, task -> 0, cores == CoreOrder.EDF), "",
                none("a boost inside windows has no sound analysis under time partitions; open the task without one"));
        } catch (final IllegalArgumentException e) {
            return none(e.getMessage());
        }
    }

    /**
     * Chooses.
     *
     * @param policy name of the scheduling policy
     * @param level  of the mechanism, see {@link Capabilities}
     * @param mode   what threads do while the GPU works for them
     * @param cores  how the kernel orders the threads of a core
     * @return the analysis, or the reason why there is none
     */
    public static SoundAnalysis of(final String policy, final int level, final WaitMode mode, final CoreOrder cores) {
        final boolean edf = EarliestDeadlineFirst.INSTANCE.name().equals(policy);
        if (!edf && !FixedPriority.INSTANCE.name().equals(policy)) {
            return none("policy " + policy + " has no sound analysis; use fp or edf, or --admission off");
        }
        if (level != Capabilities.INTERRUPT && level != Capabilities.GATE) {
            return none("a mechanism of level " + level + " has no sound analysis; use one of level 3 (" + INTERRUPTING
                + ") or 1 (gate), or --admission off");
        }
        if (edf && level == Capabilities.GATE) {
            return none("EDF behind a gate (level 1) has no sound analysis; use policy fp, or a mechanism of level 3");
        }
        if (edf && cores == CoreOrder.FP && mode == WaitMode.BUSY) {
            return none("threads that spin (mode: busy) under EDF on the GPU and fixed priorities on the cores can "
                + "deadlock: a thread spins for the GPU on the core that the GPU's holder needs; use mode: suspend, "
                + "policy fp, or SCHED_DEADLINE threads with --cores edf");
        }
        if (!edf && cores == CoreOrder.EDF) {
            return none("cores by deadline with the GPU by fixed priority have no sound analysis; use --cores fp, or "
                + "policy edf");
        }
        final SoundAnalysis boosted = boosted(edf, level, mode);
        final String family = edf ? "edf-" + cores.word() : level == Capabilities.GATE ? "gate" : "gcaps-window";
        return some(family + "-" + mode.word(), boosted);
    }

    /** The threads keep their boost from begin to end, also while another window has the GPU. */
    private static SoundAnalysis boosted(final boolean edf, final int level, final WaitMode mode) {
        if (edf || level != Capabilities.INTERRUPT) {
            return none("a boost inside windows has a sound analysis under policy fp with a mechanism of level 3 only "
                + "(" + INTERRUPTING + "); open the task without one");
        }
        if (mode == WaitMode.BUSY) {
            return none("threads that spin (mode: busy) at a boost keep their cores while others have the GPU, for "
                + "which there is no sound analysis; use mode: suspend, or open the task without a boost");
        }
        return some("gcaps-boost-" + mode.word(), null);
    }

    private static SoundAnalysis some(final String name, final SoundAnalysis boosted) {
        final Analysis analysis = Analyses.get(name);
        if (analysis.claim() != Analysis.Claim.SOUND) {
            throw new IllegalStateException("analysis " + name + " is not sound for this scheduler");
        }
        return new SoundAnalysis(analysis, "", boosted);
    }

    private static SoundAnalysis none(final String reason) {
        return new SoundAnalysis(null, reason, null);
    }

    /**
     * Whether there is an analysis.
     *
     * @return true if so
     */
    public boolean exists() {
        return analysis != null;
    }
}
