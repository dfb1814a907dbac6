/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Response times where the end of one job releases another: the release jitter of a successor is the response of its
 * predecessor, which may depend on that jitter again. Theorem 8 of {@code analysis/docs/chains.md}.
 *
 * <p>A successor is analysed with the arrivals of its root (the task that event edges lead back to), with jitter
 * {@code J = R(predecessor) + own jitter} and deadline {@code min(T, R(predecessor) + own deadline)}. J starts from
 * what the file says and only grows; at rest the vector is one for which no job can be the first to exceed its bound.
 * Not thread-safe; one instance per set and analysis.
 */
final class EventJitter {
    /** Rounds before the search gives up. Each round is one analysis of the set. */
    private static final int MAX_ROUNDS = 1000;

    private final Analysis analysis;
    private final TaskSet set;
    /** Predecessor by successor, roots first. */
    private final Map<String, String> predecessors;
    private final Map<String, Integer> index = new HashMap<>();
    /** Response of the predecessor, by successor: how much later than its root's arrival it may be released. */
    private final Map<String, Long> inherited = new HashMap<>();
    /** Successors whose event may come a period late or more: the model has no place for them. */
    private final Set<String> late = new HashSet<>();
    private String problem = "";
    private AnalysisResult fromRoot;

    EventJitter(final Analysis analysis, final TaskSet set) {
        this.analysis = analysis;
        this.set = set;
        predecessors = set.chains().eventPredecessors();
        for (int i = 0; i < set.tasks().size(); i++) {
            index.put(set.tasks().get(i).name(), i);
        }
        predecessors.keySet().forEach(task -> inherited.put(task, 0L));
        solve();
    }

    private void solve() {
        for (int round = 0; round < MAX_ROUNDS; round++) {
            final TaskSet shifted = shifted();
            fromRoot = analysis.analyse(shifted);
            if (!grow(shifted)) {
                return;
            }
        }
        problem = "the jitter of the event edges did not come to rest in " + MAX_ROUNDS + " rounds";
    }

    /** The set as the analysis sees it: without chains, each successor with what it inherits. */
    private TaskSet shifted() {
        final List<Task> tasks = new ArrayList<>(set.tasks());
        for (final Map.Entry<String, Long> entry : inherited.entrySet()) {
            final int at = index.get(entry.getKey());
            final Task task = tasks.get(at);
            final long jitterNs = Math.min(Math.addExact(entry.getValue(), task.jitterNs()), task.periodNs() - 1);
            final long deadlineNs = Math.min(Math.addExact(entry.getValue(), task.deadlineNs()), task.periodNs());
            tasks.set(at, task.withTimes(deadlineNs, jitterNs, task.blockingNs()));
        }
        // what the tasks that may miss deadlines say of their arrivals stays
        return set.withChains(new Chains(List.of(), set.chains().maxPeriodNs())).withTasks(tasks);
    }

    /** Takes over what the last analysis says of the predecessors; true if a successor inherits more than before. */
    private boolean grow(final TaskSet shifted) {
        boolean grown = false;
        for (final Map.Entry<String, String> edge : predecessors.entrySet()) {
            final int from = index.get(edge.getValue());
            final Long bound = fromRoot.tasks().get(from).wcrtNs();
            // without a bound: as long as it meets the deadline, which is what the bounds of the others then assume
            final long responseNs = bound == null ? shifted.tasks().get(from).deadlineNs() : bound;
            final Task task = set.tasks().get(index.get(edge.getKey()));
            if (Math.addExact(responseNs, task.jitterNs()) >= task.periodNs()) {
                late.add(edge.getKey());
            }
            if (responseNs > inherited.get(edge.getKey())) {
                inherited.put(edge.getKey(), responseNs);
                grown = true;
            }
        }
        return grown;
    }

    /** Why no bound holds; empty if the search came to rest. */
    String problem() {
        return problem;
    }

    /** Bound on the time from the arrival of the root to the end, or null. */
    Long fromRootNs(final String task) {
        return problem.isEmpty() && !late.contains(task) ? fromRoot.tasks().get(index.get(task)).wcrtNs() : null;
    }

    /** Why a task has no bound. */
    String reason(final String task) {
        if (!problem.isEmpty()) {
            return problem;
        }
        return late.contains(task) ? "the event that releases task \"" + task
            + "\" may come a period late or later; write sampling for that edge, or shorten what is before it"
            : "task \"" + task + "\" has no response-time bound";
    }

    /** Results of the tasks, each from its own release event, in the order of the set. */
    List<TaskResult> tasks() {
        final List<TaskResult> tasks = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            final Task task = set.tasks().get(i);
            final TaskResult bound = fromRoot.tasks().get(i);
            if (!problem.isEmpty() || late.contains(task.name())) {
                tasks.add(new TaskResult(task.name(), null, task.deadlineNs(), task.bestEffort(), null));
            } else if (!inherited.containsKey(task.name()) || bound.wcrtNs() == null) {
                tasks.add(new TaskResult(task.name(), bound.wcrtNs(), task.deadlineNs(), bound.schedulable(),
                    bound.terms(), inherited.containsKey(task.name()) ? null : bound.passed()));
            } else {
                final long before = inherited.get(task.name());
                tasks.add(new TaskResult(task.name(), bound.wcrtNs() - before, task.deadlineNs(), bound.schedulable(),
                    withoutInherited(bound.terms(), before)));
            }
        }
        return tasks;
    }

    private static Terms withoutInherited(final Terms terms, final long before) {
        return terms == null ? null : new Terms(terms.ownNs(), terms.jitterNs() - before, terms.preemptionNs(),
            terms.interferenceNs(), terms.interleavingNs(), terms.blockingNs(), terms.overheadNs());
    }

    /** Of the tasks that may miss deadlines. */
    List<MissBound> misses() {
        return fromRoot.misses();
    }

    /** Whether every task keeps its deadline. */
    boolean schedulable() {
        return problem.isEmpty() && late.isEmpty() && fromRoot.schedulable();
    }
}
