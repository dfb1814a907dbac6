/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Chain;
import dev.gpuseg.analysis.model.Chains;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Follows samples through the chains of a set. A job reads when it first has its core: the first task of a chain the
 * time, every other one the sample that its predecessor wrote last. It writes what it read when it ends.
 *
 * <p>An output that comes from the sample of time s shows its age, now - s. If the output before came from an earlier
 * sample s', an event just after s' has waited for this output: its reaction time is now - s'.
 */
final class ChainObserver {
    static final long NOTHING = -1;

    private final List<Chain> chains;
    private final int[][] tasks;
    /** By task: pairs of chain and position. */
    private final int[][] places;
    private final int[][] successors;
    private final boolean[] released;
    /** By chain and position: sample that the running job has read, and that the last job wrote. */
    private final long[][] read;
    private final long[][] written;
    private final long[] outputs;
    private final long[] maxReactionNs;
    private final long[] maxAgeNs;
    private final long[] misses;

    ChainObserver(final TaskSet set) {
        final Chains all = set.chains();
        chains = all.all();
        final Map<String, Integer> index = new HashMap<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            index.put(set.tasks().get(i).name(), i);
        }
        final List<List<Integer>> at = new ArrayList<>();
        final List<List<Integer>> next = new ArrayList<>();
        for (int i = 0; i < set.tasks().size(); i++) {
            at.add(new ArrayList<>());
            next.add(new ArrayList<>());
        }
        tasks = new int[chains.size()][];
        read = new long[chains.size()][];
        written = new long[chains.size()][];
        for (int c = 0; c < chains.size(); c++) {
            tasks[c] = chains.get(c).tasks().stream().mapToInt(index::get).toArray();
            read[c] = new long[tasks[c].length];
            written[c] = new long[tasks[c].length];
            for (int k = 0; k < tasks[c].length; k++) {
                at.get(tasks[c][k]).addAll(List.of(c, k));
            }
        }
        released = new boolean[set.tasks().size()];
        for (final Map.Entry<String, String> edge : all.eventPredecessors().entrySet()) {
            released[index.get(edge.getKey())] = true;
            next.get(index.get(edge.getValue())).add(index.get(edge.getKey()));
        }
        places = toArrays(at);
        successors = toArrays(next);
        outputs = new long[chains.size()];
        maxReactionNs = new long[chains.size()];
        maxAgeNs = new long[chains.size()];
        misses = new long[chains.size()];
    }

    private static int[][] toArrays(final List<List<Integer>> lists) {
        return lists.stream().map(list -> list.stream().mapToInt(Integer::intValue).toArray()).toArray(int[][]::new);
    }

    void reset() {
        for (int c = 0; c < tasks.length; c++) {
            Arrays.fill(read[c], NOTHING);
            Arrays.fill(written[c], NOTHING);
        }
        Arrays.fill(outputs, 0);
        Arrays.fill(maxReactionNs, 0);
        Arrays.fill(maxAgeNs, 0);
        Arrays.fill(misses, 0);
    }

    /** Whether another task releases this one. */
    boolean isReleasedByEvent(final int task) {
        return released[task];
    }

    /** The tasks that the end of a job of this one releases. */
    int[] releasedBy(final int task) {
        return successors[task];
    }

    /** A job has its core for the first time. */
    void starts(final int task, final long nowNs) {
        final int[] of = places[task];
        for (int p = 0; p < of.length; p += 2) {
            final int c = of[p];
            final int k = of[p + 1];
            read[c][k] = k == 0 ? nowNs : written[c][k - 1];
        }
    }

    /** What the running job of a task has read in the first of its chains. */
    long sampleNs(final int task) {
        final int[] of = places[task];
        return of.length == 0 ? NOTHING : read[of[0]][of[1]];
    }

    /** A job has ended. */
    void ends(final int task, final long nowNs) {
        final int[] of = places[task];
        for (int p = 0; p < of.length; p += 2) {
            final int c = of[p];
            final int k = of[p + 1];
            final long before = written[c][k];
            written[c][k] = read[c][k];
            if (k == tasks[c].length - 1 && read[c][k] != NOTHING) {
                output(c, before, read[c][k], nowNs);
            }
        }
    }

    private void output(final int c, final long before, final long sample, final long nowNs) {
        outputs[c]++;
        final long ageNs = nowNs - sample;
        maxAgeNs[c] = Math.max(maxAgeNs[c], ageNs);
        boolean missed = chains.get(c).ageNs() > 0 && ageNs > chains.get(c).ageNs();
        if (before != NOTHING && sample > before) {
            final long reactionNs = nowNs - before;
            maxReactionNs[c] = Math.max(maxReactionNs[c], reactionNs);
            missed |= chains.get(c).reactionNs() > 0 && reactionNs > chains.get(c).reactionNs();
        }
        misses[c] += missed ? 1 : 0;
    }

    long maxReactionNs(final int chain) {
        return maxReactionNs[chain];
    }

    long maxAgeNs(final int chain) {
        return maxAgeNs[chain];
    }

    List<SimulationResult.ChainObservation> all() {
        final List<SimulationResult.ChainObservation> all = new ArrayList<>();
        for (int c = 0; c < tasks.length; c++) {
            final Chain chain = chains.get(c);
            all.add(new SimulationResult.ChainObservation(chain.name(), outputs[c], misses[c], maxReactionNs[c],
                chain.reactionNs(), maxAgeNs[c], chain.ageNs()));
        }
        return all;
    }
}
