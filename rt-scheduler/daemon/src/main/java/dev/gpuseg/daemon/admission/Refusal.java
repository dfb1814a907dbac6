/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.io.MissWriter;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.report.Sensitivity;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.MissBound;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalLong;

/** Says in one line why a set fails with a newcomer, and what would make it fit. */
final class Refusal {
    private static final long PERMILLE = 1000;
    private static final double PERMILLE_IN_PERCENT = 10.0;

    private Refusal() {
    }

    /**
     * Explains.
     *
     * @param prospect one that is not proven
     * @param newcomer name of the task that asks, as in the set; null if none does
     * @return one line: the failing task, its bound, its deadline, and what would make it fit
     */
    static String text(final Prospect prospect, final String newcomer) {
        return text(prospect, newcomer, "");
    }

    /**
     * Explains.
     *
     * @param prospect one that is not proven
     * @param newcomer name of the task that asks, as in the set; null if none does
     * @param advice   when it fits besides, {@code if ...}; empty if there is no such way
     * @return one line: the failing task, its bound, its deadline, and all that would make it fit
     */
    static String text(final Prospect prospect, final String newcomer, final String advice) {
        if (!prospect.problem().isEmpty()) {
            return (newcomer == null ? "" : "task \"" + newcomer + "\": ") + prospect.problem();
        }
        if (prospect.result().tasks().stream().allMatch(TaskResult::schedulable)) {
            return DeclaredChains.refusal(prospect, newcomer) + (advice.isEmpty() ? "" : "; fits " + advice);
        }
        final Analysis analysis = prospect.analysis();
        final TaskSet set = prospect.set();
        final int asking = indexOf(set, newcomer);
        int failing = asking >= 0 && !prospect.result().tasks().get(asking).schedulable() ? asking : -1;
        for (int i = 0; failing < 0 && i < set.tasks().size(); i++) {
            failing = prospect.result().tasks().get(i).schedulable() ? -1 : i;
        }
        final Task task = set.tasks().get(failing);
        final OptionalLong bound = boundPastTheDeadline(analysis, set, failing);
        final StringBuilder text = new StringBuilder("task \"").append(newcomer == null ? task.name() : newcomer)
            .append("\" ");
        if (newcomer != null && failing != asking) {
            text.append("makes \"").append(task.name()).append("\" ");
        }
        text.append(newcomer != null && failing != asking ? "miss: " : "can miss: ").append("bound ")
            .append(bound.isPresent() ? Durations.format(bound.getAsLong())
                : "over " + Durations.format(task.periodNs()))
            .append(", deadline ").append(Durations.format(task.deadlineNs())).append(" (").append(analysis.name())
            .append(')');
        for (final MissBound misses : prospect.result().misses()) {
            text.append(misses.task().equals(task.name()) ? ", " + MissWriter.sentence(misses) : "");
        }
        final List<String> remedies = remedies(analysis, set, asking, failing == asking ? bound : OptionalLong.empty());
        if (remedies.isEmpty() && advice.isEmpty()) {
            text.append("; no change of this task alone helps: close another one");
        } else {
            text.append("; fits ").append(remedies.isEmpty() ? "" : "with " + String.join(", or ", remedies))
                .append(remedies.isEmpty() || advice.isEmpty() ? "" : ", or ").append(advice);
        }
        return text.toString();
    }

    private static List<String> remedies(final Analysis analysis, final TaskSet set, final int asking,
        final OptionalLong longerDeadlineNs) {
        final List<String> remedies = new ArrayList<>();
        if (asking >= 0) {
            share(remedies, Sensitivity.gpuPermille(analysis, set, asking), "of its GPU time");
            share(remedies, Sensitivity.cpuPermille(analysis, set, asking), "of its CPU time");
        }
        if (longerDeadlineNs.isPresent()
            && analysis.analyse(withDeadline(set, asking, longerDeadlineNs.getAsLong())).schedulable()) {
            remedies.add("deadline " + Durations.format(longerDeadlineNs.getAsLong()));
        }
        final OptionalLong epsilon = Sensitivity.epsilonNs(analysis, set);
        if (epsilon.isPresent()) {
            remedies.add("epsilon " + Durations.format(epsilon.getAsLong()));
        }
        return remedies;
    }

    private static void share(final List<String> remedies, final long permille, final String ofWhat) {
        if (permille > 0 && permille < PERMILLE) {
            remedies.add(String.format(Locale.ROOT, "%.1f %% %s", permille / PERMILLE_IN_PERCENT, ofWhat));
        }
    }

    /** An analysis stops where a bound passes the deadline. This is the bound with the period for a deadline. */
    private static OptionalLong boundPastTheDeadline(final Analysis analysis, final TaskSet set, final int failing) {
        final Task task = set.tasks().get(failing);
        if (task.deadlineNs() == task.periodNs()) {
            return OptionalLong.empty();
        }
        final TaskResult relaxed =
            analysis.analyse(withDeadline(set, failing, task.periodNs())).tasks().get(failing);
        return relaxed.wcrtNs() == null ? OptionalLong.empty() : OptionalLong.of(relaxed.wcrtNs());
    }

    private static TaskSet withDeadline(final TaskSet set, final int index, final long deadlineNs) {
        final Task task = set.tasks().get(index);
        final List<Task> tasks = new ArrayList<>(set.tasks());
        tasks.set(index, task.withTimes(deadlineNs, task.jitterNs(), task.blockingNs()));
        return set.withTasks(tasks);
    }

    private static int indexOf(final TaskSet set, final String name) {
        for (int i = 0; i < set.tasks().size(); i++) {
            if (set.tasks().get(i).name().equals(name)) {
                return i;
            }
        }
        return -1;
    }
}
