/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.SharedClasses;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TurnSlices;
import dev.gpuseg.core.Policy;
import dev.gpuseg.daemon.conductor.TaskOpen;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Whether theorem 16 of {@code analysis/docs/turns.md}, by which begins wait for no driver call, covers what is
 * admitted: what its hypotheses ask of the daemon, of the requests and of the constants.
 *
 * @param analysis the analysis; null if nothing asks for it
 * @param obstacle why this daemon takes no turns, one line; empty if it can
 * @param together what real-time tasks of one GPU are proven with: all that this set declares, whatever is open, so
 *                 that their slices never change; null where turns do not say that tasks are together
 */
record TurnProof(Analysis analysis, String obstacle, TaskSet together) {
    /** The name of the analysis. */
    static final String ANALYSIS = Analyses.byTurns().name();

    /**
     * What is possible with the constants in use.
     *
     * @param settings of admission
     * @param sound    of the policy in force
     * @param policy   that policy
     * @param obstacle why this daemon takes no turns, one line; empty if it can
     */
    static TurnProof of(final AdmissionSettings settings, final SoundAnalysis sound, final Policy policy,
        final String obstacle) {
        if (settings.mode() != AdmissionMode.ENFORCE || settings.platform().limits().turns() == null) {
            return new TurnProof(null, "", null);
        }
        final TaskSet together = settings.platform().limits().turns().together() ? settings.declared() : null;
        final String apart = together == null ? "" : SharedClasses.apart(policy, together);
        return new TurnProof(Analyses.byTurns(), !obstacle.isEmpty() ? obstacle : sound.turns() ? apart
            : "turns have a sound analysis under policy fp or classes, cores by priority, and threads that suspend",
            together);
    }

    /** The slices of the contexts of real-time tasks, ns by name; empty if they go by rank. */
    Map<String, Long> slicesNs() {
        final Map<String, Long> slicesNs = new HashMap<>();
        if (together != null) {
            final long[] ofTask = TurnSlices.of(together);
            for (int i = 0; i < ofTask.length; i++) {
                final Task task = together.tasks().get(i);
                if (!task.bestEffort() && task.gpuSegmentCount() > 0) {
                    slicesNs.put(task.name(), ofTask[i]);
                }
            }
        }
        return slicesNs;
    }

    /** Whether the constants in use speak of turns, and the daemon goes by what is proven. */
    boolean isStated() {
        return analysis != null;
    }

    /**
     * What speaks against it before any analysis.
     *
     * @param admitted all tasks
     * @return one line; empty if nothing does
     */
    String conflict(final List<Admitted> admitted) {
        if (!obstacle.isEmpty()) {
            return obstacle;
        }
        for (final Admitted task : admitted) {
            final String who = "task \"" + task.request().name() + "\" ";
            if (Boosts.counts(task)) {
                return who + "has a boost, which turns do not contain";
            }
            if (!task.isRealTime()) {
                continue;
            }
            if (task.source() != Admitted.Source.DECLARED) {
                return who + "is not declared, and turns need its times; declare it in the task-set file";
            }
            if (together != null && task.gpuPriority() != declaredRank(task)) {
                return who + "has GPU priority " + task.gpuPriority() + ", and the slices are those of its declared "
                    + declaredRank(task) + " (turns: together); set it back, or change the file";
            }
            if (!task.request().optimistic()) {
                return who + "waits at each begin (GPUSEG_TASK_ALWAYS_WAIT, or optimistic: false); U1 wants begins "
                    + "that do not";
            }
            if (task.request().share() < TaskOpen.WHOLE_GPU) {
                return who + "may use " + task.request().share() + "% of the GPU, so its context has no long time "
                    + "slice (U5); give its user share: 100% in limits.d";
            }
        }
        return "";
    }

    private int declaredRank(final Admitted task) {
        return together.tasks().stream().filter(same -> same.name().equals(task.request().name()))
            .mapToInt(Task::gpuPriority).findFirst().orElse(task.gpuPriority());
    }

    /**
     * The same with what can only be said of bounds.
     *
     * @param prospect by this analysis
     * @param admitted all tasks
     * @return the prospect, with a problem if a hypothesis fails
     */
    Prospect checked(final Prospect prospect, final List<Admitted> admitted) {
        if (!prospect.proven() || prospect.result() == null) {
            return prospect;
        }
        final Soundness sound = Soundness.of(analysis.description(), prospect.set());
        if (sound.verdict() == Soundness.Verdict.NOT_SOUND) {
            return new Prospect(analysis, prospect.set(), prospect.result(), sound.text());
        }
        for (final Admitted task : admitted) {
            final TaskOpen request = task.request();
            final Long boundNs = task.isRealTime() ? prospect.result().boundOf(prospect.set(), request.name()) : null;
            if (boundNs != null && request.windowNs() > 0 && request.windowNs() < boundNs) {
                return new Prospect(analysis, prospect.set(), prospect.result(), "task \"" + request.name()
                    + "\" has a longest window of " + Durations.format(request.windowNs()) + ", and U5 wants its bound "
                    + "of " + Durations.format(boundNs));
            }
        }
        return prospect;
    }

    /**
     * By what a set is proven, and with which constants.
     *
     * @param analysis its analysis; null if there is none
     * @param platform the constants in use
     */
    static String text(final Analysis analysis, final Platform platform) {
        if (analysis == null) {
            return "nothing";
        }
        final StringBuilder text = new StringBuilder(analysis.name()).append(" (");
        for (int gpu = 0; gpu < platform.gpus().size(); gpu++) {
            text.append(gpu == 0 ? "" : ", gpu " + gpu + ": ").append("epsilon ")
                .append(Durations.format(platform.gpus().get(gpu).epsilonNs())).append(", theta ")
                .append(Durations.format(platform.gpus().get(gpu).thetaNs()));
        }
        if (analysis.name().equals(ANALYSIS)) {
            final TurnLimits turns = platform.limits().turns();
            text.append(", turns of ").append(Durations.format(turns.sliceNs())).append(" with ")
                .append(turns.contexts()).append(" met").append(turns.isMeasured() ? ", waits of at most "
                + Durations.format(turns.waitNs()) + " measured" : "");
        }
        if (platform.limits().newcomerNs() > 0) {
            text.append(", newcomers of ").append(Durations.format(platform.limits().newcomerNs())).append(" every ")
                .append(Durations.format(platform.limits().newcomerPeriodNs()));
        }
        return text.append(')').toString();
    }
}
