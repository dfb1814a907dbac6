/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import dev.gpuseg.analysis.RandomSets;
import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;

/** Random sets with one to three chains; some tasks are released by the end of another. */
final class RandomChains {
    private RandomChains() {
    }

    static TaskSet of(final long seed) {
        for (long attempt = 0;; attempt++) {
            final TaskSet set = RandomSets.of(seed * 1_000 + attempt);
            if (set.tasks().stream().filter(task -> !task.bestEffort()).count() >= 2) {
                try {
                    return withChains(set, new Random(seed * 31 + attempt));
                } catch (final InvalidModelException e) {
                    continue;   // the drawn edges contradict each other: draw again
                }
            }
        }
    }

    private static TaskSet withChains(final TaskSet drawn, final Random random) {
        final List<Task> tasks = new ArrayList<>(drawn.tasks());
        final List<Integer> members = new ArrayList<>();
        for (int i = 0; i < tasks.size(); i++) {
            if (!tasks.get(i).bestEffort()) {
                members.add(i);
            }
        }
        final Map<String, String> released = new HashMap<>();
        final List<Chain> chains = new ArrayList<>();
        final int count = 1 + random.nextInt(3);
        for (int c = 0; c < count; c++) {
            Collections.shuffle(members, random);
            final List<Integer> path = members.subList(0, 2 + random.nextInt(Math.min(4, members.size()) - 1));
            final List<Chain.Edge> edges = new ArrayList<>();
            for (int k = 1; k < path.size(); k++) {
                final Task from = tasks.get(path.get(k - 1));
                final Task to = tasks.get(path.get(k));
                final boolean event = random.nextInt(3) == 0 && c == 0;
                edges.add(event ? Chain.Edge.EVENT : Chain.Edge.SAMPLING);
                if (event) {
                    released.put(to.name(), from.name());
                    tasks.set(path.get(k), ofPeriod(to, from.periodNs()));
                }
            }
            chains.add(new Chain("chain-" + c, path.stream().map(i -> tasks.get(i).name()).toList(), edges, 0, 0));
        }
        final Map<String, Long> maxPeriods = new HashMap<>();
        for (final int i : members) {
            final Task task = tasks.get(i);
            if (!released.containsKey(task.name())) {
                maxPeriods.put(task.name(), task.periodNs() + (random.nextBoolean() ? 0
                    : random.nextInt((int) (task.periodNs() / 4))));
            }
        }
        return drawn.withTasks(tasks).withChains(new Chains(chains, maxPeriods));
    }

    private static Task ofPeriod(final Task task, final long periodNs) {
        return new Task(task.name(), task.cpu(), task.gpu(), periodNs, periodNs, task.jitterNs(), task.blockingNs(),
            task.priority(), task.gpuPriority(), false, task.segments());
    }
}
