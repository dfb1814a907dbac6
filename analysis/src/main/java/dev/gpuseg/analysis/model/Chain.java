/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Tasks that hand data on: each one works on what the one before it wrote ({@code analysis/docs/chains.md}).
 *
 * @param name       unique in its set, not empty
 * @param tasks      names, from the input to the output; 2..{@link #MAX_TASKS}, none twice
 * @param edges      how the data go from each task to the next; one less than tasks
 * @param reactionNs longest time allowed from an event at the input to the first output that reflects it; 0 = no limit
 * @param ageNs      largest age allowed of the sample behind an output; 0 = no limit
 */
public record Chain(String name, List<String> tasks, List<Edge> edges, long reactionNs, long ageNs) {
    /** Most tasks of a chain. */
    public static final int MAX_TASKS = 64;

    /** How data go from one task to the next. */
    public enum Edge {
        /** The next task is released by its own clock, and each of its jobs reads what was written last. */
        SAMPLING,
        /** The end of each job releases a job of the next task, which reads what that job wrote. */
        EVENT;

        /** The word of the file; {@code sampling} or {@code event}. */
        public String word() {
            return name().toLowerCase(Locale.ROOT);
        }
    }

    /** Validates what concerns the chain alone. */
    public Chain {
        tasks = List.copyOf(tasks);
        edges = List.copyOf(edges);
        if (name == null || name.isBlank()) {
            throw new InvalidModelException("chain: the name is empty; give each chain a name");
        }
        final String who = "chain \"" + name + "\": ";
        if (tasks.size() < 2 || tasks.size() > MAX_TASKS) {
            throw new InvalidModelException(who + "tasks has " + tasks.size() + (tasks.size() == 1 ? " item" : " items")
                + "; a chain has 2.." + MAX_TASKS + " tasks");
        }
        final Set<String> seen = new HashSet<>();
        for (final String task : tasks) {
            if (!seen.add(task)) {
                throw new InvalidModelException(who + "task \"" + task + "\" occurs twice; a chain passes each task "
                    + "once, so write a chain for each way through it");
            }
        }
        if (edges.size() != tasks.size() - 1) {
            throw new InvalidModelException(who + "edges has " + edges.size() + (edges.size() == 1 ? " item" : " items")
                + " for " + tasks.size() + " tasks; write one word for all edges, or a list of " + (tasks.size() - 1));
        }
        Task.requireTime(who + "reaction", reactionNs);
        Task.requireTime(who + "age", ageNs);
    }
}
