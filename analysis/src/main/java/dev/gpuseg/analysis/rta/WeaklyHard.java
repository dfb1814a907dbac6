/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.Durations;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * How many jobs of a task can miss their deadlines among any k consecutive ones, where some tasks need their declared
 * times rarely.
 *
 * <p>Hypotheses (theorem 13 of {@code docs/misses.md}): those of theorem 1 with every deadline of a task that may miss
 * replaced by its period, and
 * <ul>
 * <li>overload jobs of a task arrive at least {@code overload.period} apart; every other job needs at most the typical
 *     share of each declared time;</li>
 * <li>a task that may miss arrives at most {@code max_period} after its last arrival;</li>
 * <li>a job that is late goes on; no overrun action acts, because budgets cover the declared times.</li>
 * </ul>
 * With R' = bounds of theorem 1 with declared times, U_i = Jr_i + the least fixed point of its recurrence with typical
 * times and jitters R', and W = U_i + R'_o + 2 eps, a job of i is late only if it arrives in an interval of length W
 * around the arrival of an overload job of some o, or if U_i is above D_i. So one overload job makes at most
 * {@code floor(W / T_i) + 1} jobs late, and of k consecutive jobs at most
 * <pre>
 *  sum_o (floor(((k - 1) M_i + W) / T_o) + 1) (floor(W / T_i) + 1)
 * </pre>
 * Source: this project. That overload spoils a bounded number of jobs of a set that is schedulable without it is the
 * idea of typical worst-case analysis (Quinton, Hanke and Ernst, DATE 2012; Xu, Hammadeh, Kr&ouml;ller, Ernst and
 * Quinton, ECRTS 2015); neither busy windows nor their integer program are used here. Stateless.
 */
final class WeaklyHard {
    private WeaklyHard() {
    }

    /** Whether a task of the set may miss deadlines. */
    static boolean concerns(final TaskSet set) {
        return set.tasks().stream().anyMatch(task -> task.missLimit() != null);
    }

    /** Bounds of all tasks, and of the misses of those that have a limit. */
    static AnalysisResult analyse(final Analysis analysis, final TaskSet set) {
        try {
            final String refusal = refusal(analysis, set);
            return refusal.isEmpty() ? withMisses((GcapsWindow) analysis, set) : onTime(analysis, set, refusal);
        } catch (final ArithmeticException e) {
            throw new InvalidModelException("task set \"" + set.id() + "\": a sum of times exceeds 2^63 ns"
                + "; use shorter times or longer periods");
        }
    }

    private static String refusal(final Analysis analysis, final TaskSet set) {
        if (!(analysis instanceof GcapsWindow)) {
            return analysis.name() + " bounds no misses; use gcaps-window-" + set.mode().word();
        }
        if (PreparedSet.of(set).contextCount > 0) {
            return "misses have no bound where tasks share a process; run them in different processes";
        }
        return set.chains().eventPredecessors().isEmpty() ? ""
            : "misses have no bound where chains have event edges; write sampling";
    }

    private static AnalysisResult prepared(final Analysis analysis, final TaskSet set) {
        return analysis.analyse(analysis.needsPriorities() ? PreparedSet.of(set) : PreparedSet.withoutPriorities(set));
    }

    /** A limit is kept by a task that is never late; of others nothing is known. */
    private static AnalysisResult onTime(final Analysis analysis, final TaskSet set, final String why) {
        final AnalysisResult result = prepared(analysis, set);
        final List<MissBound> misses = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            if (task.missLimit() != null) {
                final boolean never = result.schedulable() && result.tasks().get(i).schedulable();
                misses.add(new MissBound(task.name(), task.missLimit(), never ? 0L : null,
                    result.tasks().get(i).wcrtNs(), result.tasks().get(i).wcrtNs(), never ? "" : why));
            }
        }
        return new AnalysisResult(result.analysis(), result.taskSetId(), result.schedulable(), result.tasks(),
            List.of(), misses);
    }

    private static AnalysisResult withMisses(final GcapsWindow analysis, final TaskSet set) {
        final List<Task> patient = new ArrayList<>();
        for (final Task task : set.tasks()) {
            patient.add(task.missLimit() == null ? task : task.withTimes(task.periodNs(), task.jitterNs(),
                task.blockingNs()));
        }
        final AnalysisResult late = prepared(analysis, set.withTasks(patient));
        final Usual usual = late.schedulable() ? new Usual(analysis, set, late) : null;
        final List<TaskResult> tasks = new ArrayList<>();
        final List<MissBound> misses = new ArrayList<>();
        boolean schedulable = late.schedulable();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            final TaskResult result = late.tasks().get(i);
            boolean keeps = result.schedulable();
            if (task.missLimit() != null) {
                final MissBound bound = bound(set, i, late, usual);
                misses.add(bound);
                keeps = bound.holds();
            }
            schedulable &= keeps;
            tasks.add(new TaskResult(task.name(), result.wcrtNs(), task.deadlineNs(), keeps, result.terms(),
                result.passed()));
        }
        return new AnalysisResult(late.analysis(), set.id(), schedulable, tasks, List.of(), misses);
    }

    private static MissBound bound(final TaskSet set, final int i, final AnalysisResult late, final Usual usual) {
        final Task task = set.tasks().get(i);
        final Long lateNs = late.tasks().get(i).wcrtNs();
        if (usual == null) {
            return new MissBound(task.name(), task.missLimit(), null, lateNs, null, lateNs == null
                ? "a job can be unfinished when the next one arrives"
                : "another task has no bound on its response");
        }
        if (lateNs <= task.deadlineNs()) {
            return new MissBound(task.name(), task.missLimit(), 0L, lateNs, lateNs, "");
        }
        final Long usualNs = usual.responseNs(i);
        final Long maxPeriodNs = set.chains().maxPeriodNs().get(task.name());
        String problem = "";
        if (usualNs == null) {
            problem = "it can miss its deadline without an overload job";
        } else if (maxPeriodNs == null) {
            problem = "it has no max_period, so each of its jobs may meet another overload; write max_period, the "
                + "longest distance of two arrivals";
        }
        if (!problem.isEmpty()) {
            return new MissBound(task.name(), task.missLimit(), null, lateNs, usualNs, problem);
        }
        final long span = Math.multiplyExact(task.missLimit().jobs() - 1L, maxPeriodNs);
        long sum = 0;
        for (int o = 0; o < set.tasks().size(); o++) {
            final Task source = set.tasks().get(o);
            if (source.overload() != null && !source.bestEffort()) {
                final long reach = Math.addExact(usualNs, Math.addExact(late.tasks().get(o).wcrtNs(),
                    2 * usual.epsilonNs(o)));
                final long each = reach / task.periodNs() + 1;
                sum = Math.addExact(sum, Math.multiplyExact(each, Math.addExact(span, reach)
                    / source.overload().periodNs() + 1));
            }
        }
        return sum < task.missLimit().jobs() ? new MissBound(task.name(), task.missLimit(), sum, lateNs, usualNs, "")
            : new MissBound(task.name(), task.missLimit(), null, lateNs, usualNs, "overload jobs can come so often "
            + "that all of " + task.missLimit().jobs() + " jobs in a row are late (bound of a job without overload "
            + Durations.format(usualNs) + ")");
    }

    /** Responses of jobs that no overload job disturbs. */
    private static final class Usual {
        private final GcapsWindow analysis;
        private final PreparedSet typical;
        private final long[] r;
        private final ExclusiveWindow.Work work;
        /** Index in the set to position, -1 = every job of the task is an overload job. */
        private final int[] position;
        private final long[] epsilonNs;

        Usual(final GcapsWindow analysis, final TaskSet set, final AnalysisResult late) {
            this.analysis = analysis;
            final List<Task> tasks = new ArrayList<>();
            final List<Integer> kept = new ArrayList<>();
            for (int i = 0; i < set.tasks().size(); i++) {
                final Task task = set.tasks().get(i);
                if (!task.alwaysOverloads() || task.bestEffort() || task.missLimit() != null) {
                    tasks.add(task.overload() == null || task.alwaysOverloads() ? task
                        : task.withSegments(task.overload().typical(task.segments())));
                    kept.add(i);
                }
            }
            // without chains: their tasks may be among those that are left out
            typical = PreparedSet.of(set.withChains(Chains.NONE).withTasks(tasks));
            r = new long[typical.count];
            position = new int[set.tasks().size()];
            Arrays.fill(position, -1);
            for (int p = 0; p < typical.count; p++) {
                final int index = kept.get(typical.index[p]);
                position[index] = p;
                r[p] = p < typical.realTimeCount ? late.tasks().get(index).wcrtNs() : typical.deadline[p];
            }
            final PreparedSet whole = PreparedSet.of(set);
            epsilonNs = new long[whole.count];
            for (int p = 0; p < whole.count; p++) {
                epsilonNs[whole.index[p]] = whole.epsilon[p];
            }
            work = analysis.beginSearch(typical, r);
            work.windows().carryInAlways();
        }

        /** Bound on the response of task i, or null: above its deadline. */
        Long responseNs(final int i) {
            if (position[i] < 0) {
                return null;
            }
            final long bound = analysis.bound(typical, position[i], r, work, new Recurrence(2 * typical.count + 2));
            return bound == Recurrence.EXCEEDED ? null : Long.valueOf(bound);
        }

        long epsilonNs(final int i) {
            return epsilonNs[i];
        }
    }
}
