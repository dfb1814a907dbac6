/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.report;

import dev.gpuseg.analysis.assign.PriorityAssignment;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.Hypotheses;
import dev.gpuseg.analysis.rta.Soundness;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;

/**
 * Why an analysis refuses a set, and what would help: for each task without a bound below its deadline, what alone
 * exceeds it, with whom it conflicts, and by how much what must shrink. Every remedy was tried: the analysis accepts
 * the set with it. Stateless.
 */
public final class Refusals {
    /** Larger sets are explained without trying out remedies, which analyses them many times. */
    static final int TASKS_MAX = 60;
    private static final long PERMILLE = 1000;
    /** How the names of the tests begin that are not even exact for one core without a GPU (docs/edf.md). */
    private static final String BY_DEADLINE = "edf-edf";

    private Refusals() {
    }

    /**
     * Explains.
     *
     * @param analysis that was made
     * @param set      that it was made of
     * @param result   what came of it
     * @return lines; none if it accepts the set
     */
    public static List<String> of(final Analysis analysis, final TaskSet set, final AnalysisResult result) {
        if (result.schedulable()) {
            return List.of();
        }
        final List<String> lines = new ArrayList<>();
        final String conflict = conflict(analysis, set);
        if (!conflict.isEmpty()) {
            lines.add(conflict);
        }
        final List<String> impossible = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            final TaskResult bound = result.tasks().get(i);
            if (task.bestEffort() || bound.schedulable()) {
                continue;
            }
            final String alone = alone(analysis, set, task);
            if (!alone.isEmpty()) {
                impossible.add(task.name());
            }
            lines.add("task \"" + task.name() + "\": " + (alone.isEmpty() ? among(analysis, set, task)
                + equals(set, task) : alone));
        }
        for (final var chain : result.chains()) {
            if (!chain.problem().isEmpty()) {
                lines.add("chain \"" + chain.name() + "\": " + chain.problem());
            }
        }
        if (conflict.isEmpty() && impossible.isEmpty() && result.analysis().startsWith(BY_DEADLINE)) {
            lines.add("the test is sufficient, not exact: the set may hold all the same; gpuseg simulate shows runs of "
                + "it, which prove nothing");
        }
        if (conflict.isEmpty()) {
            lines.addAll(remedies(analysis, set, impossible));
        }
        return lines;
    }

    /**
     * Explains several. Only sound analyses are explained, or the only one: what a published bound refuses may run
     * well.
     *
     * @param made    the analyses
     * @param set     that they were made of
     * @param results what came of each
     * @return lines by the name of the analysis, of those that refuse the set
     */
    public static Map<String, List<String>> of(final List<Analysis> made, final TaskSet set,
        final List<AnalysisResult> results) {
        final Map<String, List<String>> lines = new HashMap<>();
        for (int i = 0; i < made.size(); i++) {
            if (made.size() == 1
                || Soundness.of(made.get(i).description(), set).verdict() != Soundness.Verdict.NOT_SOUND) {
                lines.put(results.get(i).analysis(), of(made.get(i), set, results.get(i)));
            }
        }
        return lines;
    }

    private static String conflict(final Analysis analysis, final TaskSet set) {
        try {
            return Hypotheses.conflict(analysis.description(), set);
        } catch (final InvalidModelException e) {
            return e.getMessage();
        }
    }

    /** What no other task is to blame for; empty if the task passes alone. */
    private static String alone(final Analysis analysis, final TaskSet set, final Task declared) {
        final Task task = declared.slowed(set.platform());
        final long ownNs = task.cpuNs() + task.gpuNs();
        if (ownNs > task.deadlineNs()) {
            return "its own execution, " + ms(ownNs) + " ms (CPU " + ms(task.cpuNs()) + ", GPU " + ms(task.gpuNs())
                + "), exceeds its deadline " + ms(task.deadlineNs()) + " ms" + (ownNs > task.periodNs()
                ? " and its period " + ms(task.periodNs()) + " ms" : "") + ": no scheduler can help; shorten it by "
                + ms(ownNs - task.deadlineNs()) + " ms or allow it more time";
        }
        final TaskSet only = without(set, other -> !other.bestEffort() && !other.name().equals(task.name()));
        if (only == null || passes(analysis, only)) {
            return "";
        }
        final long leftNs = task.deadlineNs() - ownNs;
        return "even alone it does not fit: its own execution is " + ms(ownNs) + " ms of its deadline "
            + ms(task.deadlineNs()) + " ms, and the " + ms(leftNs) + " ms that are left do not cover the cost of "
            + "enforcement and blocking (epsilon); it needs a longer deadline, less execution, or a smaller epsilon";
    }

    /** Which others keep it from its deadline. */
    private static String among(final Analysis analysis, final TaskSet set, final Task task) {
        final StringBuilder out = new StringBuilder("alone it fits; ");
        if (set.tasks().size() > TASKS_MAX) {
            return out.append("the tasks before it take too much of its deadline ").append(ms(task.deadlineNs()))
                .append(" ms").toString();
        }
        final List<String> culprits = new ArrayList<>();
        final List<Task> others = new ArrayList<>(set.tasks());
        others.sort(Comparator.comparingLong((Task t) -> -(t.cpuNs() + t.gpuNs()) * PERMILLE / t.periodNs()));
        for (final Task other : others) {
            if (!other.name().equals(task.name()) && !other.bestEffort()) {
                final TaskSet rest = without(set, t -> t.name().equals(other.name()));
                if (rest != null && fits(analysis, rest, task)) {
                    culprits.add('"' + other.name() + '"' + relation(task, other));
                }
            }
        }
        return out.append(culprits.isEmpty() ? "several others together keep it from its deadline "
            : "it has a bound without " + String.join(", or without ", culprits) + ", and with them none within its "
            + "deadline ").append(ms(task.deadlineNs())).append(" ms").toString();
    }

    /** Tasks of one priority delay each other, whichever comes first. */
    private static String equals(final TaskSet set, final Task task) {
        final List<String> names = new ArrayList<>();
        for (final Task other : set.tasks()) {
            if (!other.bestEffort() && !other.name().equals(task.name()) && !relation(task, other).isEmpty()
                && (other.priority() == task.priority() || other.gpuPriority() == task.gpuPriority())) {
                names.add('"' + other.name() + '"' + relation(task, other));
            }
        }
        return names.isEmpty() ? "" : "; it and " + String.join(", ", names) + " delay each other, because none "
            + "precedes: give each a priority of its own";
    }

    private static String relation(final Task task, final Task other) {
        final List<String> words = new ArrayList<>();
        if (other.priority() == task.priority() && other.cpu() == task.cpu()) {
            words.add("equal priority " + task.priority());
        }
        if (other.gpuPriority() == task.gpuPriority() && other.gpuSegmentCount() > 0 && task.gpuSegmentCount() > 0
            && other.gpu() == task.gpu()) {
            words.add("equal GPU priority " + task.gpuPriority());
        }
        if (other.cpu() == task.cpu()) {
            words.add("same core " + task.cpu());
        }
        return words.isEmpty() ? "" : " (" + String.join(", ", words) + ")";
    }

    /** By how much less of what the set passes. */
    private static List<String> remedies(final Analysis analysis, final TaskSet set, final List<String> impossible) {
        final List<String> lines = new ArrayList<>();
        if (set.tasks().size() > TASKS_MAX || set.tasks().stream().anyMatch(t -> !t.bestEffort() && t.cpu() == 0)) {
            return lines;
        }
        final Sensitivity s;
        try {
            s = Sensitivity.of(analysis, set);
        } catch (final InvalidModelException e) {
            return lines;   // it breaks a hypothesis, which is said above
        }
        final List<String> ways = new ArrayList<>();
        for (final String rule : List.of("dm", "opa")) {
            if (analysis.needsPriorities() && passesAssigned(analysis, set, rule)) {
                ways.add("other priorities (--assign " + rule + ")");
                break;
            }
        }
        shrink(ways, "all CPU work", s.cpuPermille());
        shrink(ways, "all GPU work", s.gpuPermille());
        for (int i = 0; i < set.tasks().size(); i++) {
            shrink(ways, "the CPU work of \"" + set.tasks().get(i).name() + '"', s.taskCpuPermille().get(i));
            shrink(ways, "the GPU work of \"" + set.tasks().get(i).name() + '"', s.taskGpuPermille().get(i));
        }
        final OptionalLong epsilon = s.epsilonNs();
        if (epsilon.isPresent()) {
            ways.add("epsilon of at most " + Durations.format(epsilon.getAsLong()));
        }
        if (!ways.isEmpty()) {
            lines.add("it passes with one of: " + String.join("; ", ways));
        } else if (impossible.isEmpty()) {
            lines.add("no single change of execution times or epsilon helps; lengthen deadlines, move tasks to other "
                + "cores (--partition), or assign other priorities (--assign opa)");
        }
        return lines;
    }

    private static boolean passesAssigned(final Analysis analysis, final TaskSet set, final String rule) {
        try {
            return passes(analysis, PriorityAssignment.of(rule).assign(set, analysis));
        } catch (final IllegalArgumentException e) {
            return false;   // the rule does not apply to this analysis or finds no order
        }
    }

    private static void shrink(final List<String> ways, final String what, final long permille) {
        if (permille >= 0 && permille < PERMILLE) {
            ways.add(what + " shortened to " + permille / 10 + "." + permille % 10 + " %");
        }
    }

    private static TaskSet without(final TaskSet set, final java.util.function.Predicate<Task> gone) {
        final List<Task> rest = set.tasks().stream().filter(gone.negate()).toList();
        try {
            return rest.isEmpty() ? null : new TaskSet(set.id(), set.platform(), set.mode(), rest);
        } catch (final InvalidModelException e) {
            return null;
        }
    }

    private static boolean passes(final Analysis analysis, final TaskSet set) {
        try {
            return analysis.analyse(set).schedulable();
        } catch (final InvalidModelException e) {
            return false;
        }
    }

    private static boolean fits(final Analysis analysis, final TaskSet set, final Task task) {
        try {
            return analysis.analyse(set).tasks().stream()
                .anyMatch(t -> t.name().equals(task.name()) && t.schedulable());
        } catch (final InvalidModelException e) {
            return false;
        }
    }

    private static String ms(final long ns) {
        return Durations.milliseconds(ns);
    }
}
