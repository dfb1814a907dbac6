/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.core.EarliestDeadlineFirst;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.daemon.mechanism.Capabilities;

/**
 * Which analysis holds for a policy on a mechanism, or why none does.
 *
 * @param analysis the analysis, of claim {@link Analysis.Claim#SOUND}; null if there is none
 * @param reason   one line: why there is none, and what to do; empty if there is one
 */
public record SoundAnalysis(Analysis analysis, String reason) {
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
            return none("a mechanism of level " + level + " has no sound analysis; use one of level 3 (sim, nvidia) or "
                + "1 (gate), or --admission off");
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
        final String family = edf ? "edf-" + cores.word() : level == Capabilities.GATE ? "gate" : "gcaps-window";
        final Analysis analysis = Analyses.get(family + "-" + mode.word());
        if (analysis.claim() != Analysis.Claim.SOUND) {
            throw new IllegalStateException("analysis " + analysis.name() + " is not sound for this scheduler");
        }
        return new SoundAnalysis(analysis, "");
    }

    private static SoundAnalysis none(final String reason) {
        return new SoundAnalysis(null, reason);
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
