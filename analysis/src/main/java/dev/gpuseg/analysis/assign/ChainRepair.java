/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.assign;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analysis;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.analysis.rta.ChainResult;
import dev.gpuseg.analysis.rta.TaskResult;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * Looks for an order of priorities in which tasks meet their deadlines and chains their limits: exchanges two tasks at
 * a time and keeps the exchange that leaves least time above deadlines and limits. A heuristic: a set for which it
 * finds nothing may have an order all the same. What it finds, the analysis accepts. Stateless.
 *
 * <p>The searches for GPU priorities judge one task at a time, and need that its response does not depend on the order
 * of the tasks above it. A limit of a chain concerns several tasks, and an event edge makes the response of one the
 * jitter of the next, so those searches do not apply.
 */
final class ChainRepair {
    /** Analyses before it gives up. */
    private static final int TRIES_MAX = 4_000;
    /** Of something without a bound; more than any sum of times above limits. */
    private static final long NO_BOUND = 1L << 53;

    private ChainRepair() {
    }

    /**
     * Searches.
     *
     * @param set      with distinct priorities, the same on core and GPU
     * @param analysis judges
     * @return an accepted order, or null
     */
    static TaskSet search(final TaskSet set, final Analysis analysis) {
        TaskSet best = set;
        long least = excess(set, analysis.analyse(set));
        int tries = 1;
        boolean improved = true;
        while (least > 0 && improved && tries < TRIES_MAX) {
            improved = false;
            final int[] order = byPriority(best);
            TaskSet next = best;
            for (int a = 0; a < order.length && least > 0 && tries < TRIES_MAX; a++) {
                for (int b = a + 1; b < order.length && least > 0 && tries < TRIES_MAX; b++) {
                    final TaskSet candidate = exchanged(best, order[a], order[b]);
                    final long left = excess(candidate, analysis.analyse(candidate));
                    tries++;
                    if (left < least) {
                        least = left;
                        next = candidate;
                        improved = true;
                    }
                }
            }
            best = next;
        }
        return least == 0 ? best : null;
    }

    /** 0 if and only if the analysis accepts the set. */
    private static long excess(final TaskSet set, final AnalysisResult result) {
        if (result.schedulable()) {
            return 0;
        }
        long sum = 1;
        for (int i = 0; i < result.tasks().size(); i++) {
            final TaskResult task = result.tasks().get(i);
            sum = add(sum, set.tasks().get(i).bestEffort() || task.schedulable() ? 0 : NO_BOUND);
        }
        for (final ChainResult chain : result.chains()) {
            sum = add(add(sum, excess(chain.reaction())), excess(chain.age()));
        }
        return sum;
    }

    private static long excess(final ChainResult.Latency latency) {
        return latency.holds() ? 0 : latency.boundNs() == null ? NO_BOUND
            : Math.min(NO_BOUND, latency.boundNs() - latency.deadlineNs());
    }

    private static long add(final long a, final long b) {
        return Math.min(Long.MAX_VALUE - NO_BOUND, a + b);
    }

    /** Indices of the real-time tasks, highest priority first. */
    private static int[] byPriority(final TaskSet set) {
        final Integer[] order = new Integer[set.tasks().size()];
        Arrays.setAll(order, i -> i);
        return Arrays.stream(order).filter(i -> !set.tasks().get(i).bestEffort())
            .sorted(Comparator.comparingInt((Integer i) -> set.tasks().get(i).priority()).reversed())
            .mapToInt(Integer::intValue).toArray();
    }

    private static TaskSet exchanged(final TaskSet set, final int a, final int b) {
        final List<Task> tasks = new ArrayList<>(set.tasks());
        final Task first = tasks.get(a);
        final Task second = tasks.get(b);
        tasks.set(a, first.withPriorities(second.priority(), second.gpuPriority()));
        tasks.set(b, second.withPriorities(first.priority(), first.gpuPriority()));
        return set.withTasks(tasks);
    }
}
