/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.io;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Reads {@code max_period} of the tasks and the {@code chains} of a task-set file. Stateless. */
final class ChainReader {
    private static final Set<String> KEYS = Set.of("name", "tasks", "edges", "reaction", "age", "description");
    private static final List<String> EDGES = List.of(Chain.Edge.SAMPLING.word(), Chain.Edge.EVENT.word());
    private static final String EXAMPLE = "{name: brake, tasks: [camera, detect], edges: sampling, reaction: 200ms}";

    private ChainReader() {
    }

    /** The set with the chains of its file. */
    static TaskSet withChains(final TaskSet set, final Node root, final List<Node> taskNodes)
        throws InvalidFileException {
        final Map<String, Long> maxPeriods = new LinkedHashMap<>();
        final List<Node> places = new ArrayList<>();
        for (int i = 0; i < taskNodes.size(); i++) {
            final Node node = taskNodes.get(i).get("max_period");
            if (node != null) {
                maxPeriods.put(set.tasks().get(i).name(), node.durationNs());
                places.add(node);
            }
        }
        final Node list = root.get("chains");
        final List<Chain> chains = new ArrayList<>();
        if (list != null) {
            for (final Node node : list.requireList("chain", "a list like [" + EXAMPLE + "]")) {
                chains.add(toChain(node, set));
                places.add(node);
            }
        }
        try {
            return set.withChains(new Chains(chains, maxPeriods));
        } catch (final InvalidModelException e) {
            // a message begins with the name of the thing that is wrong; two chains of one name: the second
            Node wrong = list == null ? root : list;
            for (final Node place : places) {
                wrong = e.getMessage().startsWith(place.what()) ? place : wrong;
            }
            throw wrong.refusal(e.getMessage());
        }
    }

    private static Chain toChain(final Node node, final TaskSet set) throws InvalidFileException {
        if (node.kind() != Node.Kind.MAPPING) {
            throw node.refuse("is " + node.show() + "; write a mapping like " + EXAMPLE);
        }
        final String name = node.required("name").word();
        node.callIt("chain \"" + name + "\"").requireMapping(KEYS, EXAMPLE);
        final List<String> tasks = new ArrayList<>();
        for (final Node item : node.required("tasks").requireList("task", "a list like [camera, detect]")) {
            tasks.add(known(item, node, set));
        }
        try {
            return new Chain(name, tasks, edges(node, tasks.size()), limitNs(node, "reaction"), limitNs(node, "age"));
        } catch (final InvalidModelException e) {
            throw node.refusal(e.getMessage());
        }
    }

    private static String known(final Node item, final Node chain, final TaskSet set) throws InvalidFileException {
        final String task = item.word();
        final Set<String> names = new LinkedHashSet<>();
        set.tasks().forEach(known -> names.add(known.name()));
        if (!names.contains(task)) {
            throw item.refusal(chain.what() + ": task \"" + task + "\" is not in the task set; "
                + Spelling.advice(task, names));
        }
        return task;
    }

    /** One word for all edges, or one for each; sampling if nothing is said. */
    private static List<Chain.Edge> edges(final Node chain, final int tasks) throws InvalidFileException {
        final Node node = chain.get("edges");
        if (node == null || node.kind() != Node.Kind.LIST) {
            final Chain.Edge all = node == null ? Chain.Edge.SAMPLING : edge(node);
            return Collections.nCopies(Math.max(0, tasks - 1), all);
        }
        final List<Chain.Edge> edges = new ArrayList<>();
        for (final Node item : node.requireList("edge", "sampling, event, or a list of them")) {
            edges.add(edge(item));
        }
        return edges;
    }

    private static Chain.Edge edge(final Node node) throws InvalidFileException {
        return node.oneOf(EDGES).equals(Chain.Edge.EVENT.word()) ? Chain.Edge.EVENT : Chain.Edge.SAMPLING;
    }

    private static long limitNs(final Node chain, final String key) throws InvalidFileException {
        final Node node = chain.get(key);
        if (node == null) {
            return 0;
        }
        final long ns = node.durationNs();
        if (ns == 0) {
            throw node.refuse("is 0; it must be positive, like 200ms");
        }
        return ns;
    }
}
