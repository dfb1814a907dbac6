/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The chains of a task set, and what they need to know of its arrivals. Immutable and thread-safe.
 *
 * @param all         in the order of the file, at most {@link #MAX_CHAINS}
 * @param maxPeriodNs longest distance of two consecutive arrivals, by name of the task; a task that is missing here
 *                    may pause for as long as it likes
 */
public record Chains(List<Chain> all, Map<String, Long> maxPeriodNs) {
    /** Most chains of a set. */
    public static final int MAX_CHAINS = 1000;

    /** No chain, and nothing known. */
    public static final Chains NONE = new Chains(List.of(), Map.of());

    /** Copies both. */
    public Chains {
        all = List.copyOf(all);
        maxPeriodNs = Map.copyOf(maxPeriodNs);
    }

    /** Whether there is no chain. */
    public boolean isEmpty() {
        return all.isEmpty();
    }

    /**
     * Which task releases which by an event edge.
     *
     * @return predecessor by successor; each predecessor that is a successor itself comes before its own successors
     */
    public Map<String, String> eventPredecessors() {
        final Map<String, String> predecessors = new HashMap<>();
        for (final Chain chain : all) {
            for (int k = 0; k < chain.edges().size(); k++) {
                if (chain.edges().get(k) == Chain.Edge.EVENT) {
                    predecessors.put(chain.tasks().get(k + 1), chain.tasks().get(k));
                }
            }
        }
        final Map<String, String> ordered = new LinkedHashMap<>();
        for (final Chain chain : all) {
            for (final String task : chain.tasks()) {
                final List<String> path = new ArrayList<>();
                String at = task;
                while (predecessors.containsKey(at) && !ordered.containsKey(at) && !path.contains(at)) {
                    path.add(at);
                    at = predecessors.get(at);
                }
                for (int k = path.size() - 1; k >= 0; k--) {
                    ordered.put(path.get(k), predecessors.get(path.get(k)));
                }
            }
        }
        return ordered;
    }

    /**
     * The task by whose arrivals a task is released: itself, or the one that event edges lead back to.
     *
     * @param task a name
     * @return a name
     */
    public String rootOf(final String task) {
        final Map<String, String> predecessors = eventPredecessors();
        String at = task;
        while (predecessors.containsKey(at)) {
            at = predecessors.get(at);
        }
        return at;
    }

    /**
     * Checks the chains against the tasks and against each other.
     *
     * @param tasks of the set, with unique names
     * @throws InvalidModelException if they do not fit, with chain, task and remedy
     */
    void requireFit(final List<Task> tasks) {
        if (all.isEmpty() && maxPeriodNs.isEmpty()) {
            return;
        }
        if (all.size() > MAX_CHAINS) {
            throw new InvalidModelException("chains: there are " + all.size() + "; at most " + MAX_CHAINS
                + " are allowed");
        }
        final Map<String, Task> byName = new HashMap<>();
        for (final Task task : tasks) {
            byName.put(task.name(), task);
        }
        for (final Map.Entry<String, Long> entry : maxPeriodNs.entrySet()) {
            requireMaxPeriod(entry.getKey(), byName.get(entry.getKey()), entry.getValue());
        }
        final Set<String> names = new HashSet<>();
        for (final Chain chain : all) {
            if (!names.add(chain.name())) {
                throw new InvalidModelException("chain \"" + chain.name() + "\": the name occurs twice; names must be "
                    + "unique");
            }
            for (final String name : chain.tasks()) {
                requireMember(chain, name, byName.get(name));
            }
        }
        requireOneWay(byName);
        final Map<String, String> predecessors = eventPredecessors();
        for (final Chain chain : all) {
            for (int k = 0; k < chain.tasks().size(); k++) {
                requireArrivals(chain, k, predecessors);
            }
        }
    }

    private static void requireMaxPeriod(final String name, final Task task, final long ns) {
        final String who = "task \"" + name + "\": max_period is " + Durations.format(ns);
        if (task == null) {
            throw new InvalidModelException(who + ", but there is no such task; check the name");
        }
        if (ns < task.periodNs() || ns > Durations.MAX_NS) {
            throw new InvalidModelException(who + "; it must be at least the period "
                + Durations.format(task.periodNs()) + " and at most 2^53 ns (about 104 days)");
        }
    }

    private static void requireMember(final Chain chain, final String name, final Task task) {
        final String who = "chain \"" + chain.name() + "\": task \"" + name + "\" ";
        if (task == null) {
            throw new InvalidModelException(who + "is not in the task set; check the name");
        }
        if (task.bestEffort()) {
            throw new InvalidModelException(who + "is best effort, and nothing bounds its response; give it a "
                + "priority, or leave it out of the chain");
        }
    }

    /** Each task is released by one other task at most, of the same period, and never by itself. */
    private void requireOneWay(final Map<String, Task> byName) {
        final Map<String, String> releasedBy = new HashMap<>();
        for (final Chain chain : all) {
            for (int k = 0; k < chain.edges().size(); k++) {
                if (chain.edges().get(k) != Chain.Edge.EVENT) {
                    continue;
                }
                final Task from = byName.get(chain.tasks().get(k));
                final Task to = byName.get(chain.tasks().get(k + 1));
                final String who = "chain \"" + chain.name() + "\": the event edge from \"" + from.name() + "\" to \""
                    + to.name() + "\" ";
                if (from.periodNs() != to.periodNs()) {
                    throw new InvalidModelException(who + "joins the periods " + Durations.format(from.periodNs())
                        + " and " + Durations.format(to.periodNs()) + "; a task that another one releases has its "
                        + "period, so make them equal, or write sampling");
                }
                final String other = releasedBy.put(to.name(), from.name());
                if (other != null && !other.equals(from.name())) {
                    throw new InvalidModelException(who + "is its second one; \"" + other + "\" releases it already, "
                        + "so write sampling for one of the two");
                }
                if (maxPeriodNs.containsKey(to.name())) {
                    throw new InvalidModelException(who + "gives it the arrivals of the task that releases it; leave "
                        + "out max_period of \"" + to.name() + "\"");
                }
            }
        }
        for (final String start : releasedBy.keySet()) {
            String at = releasedBy.get(start);
            for (int steps = 0; at != null && steps <= releasedBy.size(); steps++) {
                if (at.equals(start)) {
                    throw new InvalidModelException("chains: event edges lead from task \"" + start + "\" back to "
                        + "itself, so nothing releases it; write sampling for one of them");
                }
                at = releasedBy.get(at);
            }
        }
    }

    /** Whoever waits for the next sample must know when it comes. */
    private void requireArrivals(final Chain chain, final int at, final Map<String, String> predecessors) {
        if (at > 0 && chain.edges().get(at - 1) == Chain.Edge.EVENT) {
            return;
        }
        String root = chain.tasks().get(at);
        while (predecessors.containsKey(root)) {
            root = predecessors.get(root);
        }
        if (!maxPeriodNs.containsKey(root)) {
            throw new InvalidModelException("chain \"" + chain.name() + "\": task \"" + root + "\" has no max_period, "
                + "so its next sample may never come; write max_period in the task, the longest distance of two "
                + "arrivals (its period, if it is strictly periodic)");
        }
    }
}
