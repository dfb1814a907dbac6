/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.BoostPriorities;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.SoundAnalysis;
import dev.gpuseg.core.Priority;
import java.util.List;

/**
 * Hypothesis M8' of the analyses with a boost ({@code analysis/docs/boost.md}): inside a window a thread is above all
 * unboosted threads of its core, and boosted threads of one core run by CPU priority.
 */
final class Boosts {
    private Boosts() {
    }

    /** Whether a task makes its thread run at a ceiling. Nothing is proven of one without a model anyway. */
    static boolean counts(final Admitted task) {
        return task.request().boost() > 0 && task.source() != Admitted.Source.UNKNOWN;
    }

    /**
     * What speaks against the hypothesis.
     *
     * @param admitted some of which are boosted; those have entries in the task-set file
     * @param placed   tasks with a core: entries of the file, with their present priorities
     * @return one line, empty if it holds
     */
    static String disorder(final List<Admitted> admitted, final List<Task> placed) {
        String boosted = "";
        for (final Admitted task : admitted) {
            boosted = counts(task) ? task.request().name() : boosted;
        }
        for (final Admitted task : admitted) {
            if (counts(task) && !task.isRealTime()) {
                return "task \"" + task.request().name() + "\" runs at boost " + task.request().boost()
                    + " but is best effort now, for which nothing is proven; leave it a priority";
            }
            if (task.isRealTime() && task.request().boost() == 0 && task.source() != Admitted.Source.UNKNOWN) {
                return "task \"" + task.request().name() + "\" has no boost and \"" + boosted
                    + "\" has one, for which nothing is proven; open all real-time tasks with a boost, or none";
            }
        }
        for (final Task task : placed) {
            final int boost = boostOf(task, admitted);
            for (final Task other : placed) {
                if (boost == 0 || other == task || other.cpu() != task.cpu() || other.bestEffort()) {
                    continue;
                }
                if (!Priority.isHigherThan(boost, other.priority())) {
                    return "task \"" + task.name() + "\" has boost " + boost + " on core " + task.cpu() + ", where \""
                        + other.name() + "\" has priority " + other.priority() + "; give it a boost above all "
                        + "priorities of its core";
                }
                final int boostOfOther = boostOf(other, admitted);
                if (boostOfOther > 0 && Priority.isHigherThan(task.priority(), other.priority())
                    && !Priority.isHigherThan(boost, boostOfOther)) {
                    return "tasks \"" + task.name() + "\" and \"" + other.name() + "\" share core " + task.cpu()
                        + " with priorities " + task.priority() + " and " + other.priority() + " but boosts " + boost
                        + " and " + boostOfOther + "; give the one with the higher priority the higher boost";
                }
            }
        }
        return "";
    }

    /**
     * Whether a set that is refused would fit if all its tasks were boosted, and with which priorities.
     *
     * @param refused  why it does not fit without
     * @param boosted  the analysis for boosted tasks; null if the tasks are boosted already
     * @param admitted the open tasks
     * @param declared the task-set file; null if there is none
     * @return the end of a sentence; empty if it would not
     */
    static String advice(final Prospect refused, final SoundAnalysis boosted, final List<Admitted> admitted,
        final TaskSet declared) {
        if (refused.set() == null || declared == null || boosted == null || !boosted.exists()
            || admitted.stream().anyMatch(task -> counts(task) || task.isRealTime()
            && task.source() != Admitted.Source.DECLARED)) {
            return "";
        }
        final BoostPriorities chosen = BoostPriorities.of(declared);
        // such as tasks of one process, for which there is no bound with a boost
        if (!chosen.conflict().isEmpty()
            || !Hypotheses.conflict(boosted.analysis().description(), refused.set()).isEmpty()
            || !boosted.analysis().analyse(refused.set()).schedulable()) {
            return "";
        }
        return "if all tasks are opened with a boost_priority (" + boosted.analysis().name() + "): "
            + chosen.text();
    }

    private static int boostOf(final Task task, final List<Admitted> admitted) {
        for (final Admitted open : admitted) {
            if (open.source() == Admitted.Source.DECLARED && open.request().name().equals(task.name())) {
                return open.request().boost();
            }
        }
        return 0;
    }
}
