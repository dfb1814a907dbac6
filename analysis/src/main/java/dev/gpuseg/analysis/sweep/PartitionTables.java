/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.sim.Simulator;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.TimePartitions;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Random window tables for the sets of a campaign: two or three partitions and time without one, windows of any order,
 * length and distance, some next to each other, guards from nothing to several updates, idle windows lent or not. In
 * one set of four all tasks are in one partition that is nearly always open, so that what happens inside of windows is
 * not small against the time without one. Table and partitions are a function of the set's id alone.
 */
final class PartitionTables {
    private static final int MOST_WINDOWS = 5;

    private PartitionTables() {
    }

    private static SplittableRandom random(final TaskSet set, final int salt) {
        return new SplittableRandom(31L * set.id().hashCode() + salt);
    }

    /**
     * The table of a set.
     *
     * @param inner policy inside a window
     */
    static TimePartitions of(final TaskSet set, final Policy inner) {
        if (isAlone(set)) {
            return alone(set, inner);
        }
        final SplittableRandom random = random(set, 1);
        long shortest = Long.MAX_VALUE;
        for (final Task task : set.tasks()) {
            shortest = Math.min(shortest, task.deadlineNs());
        }
        final long frameNs = Math.max(100, (long) (shortest * (0.05 + 0.6 * random.nextDouble())));
        final long epsilonNs = set.platform().gpus().isEmpty() ? 0 : set.platform().gpus().get(0).epsilonNs();
        final long guardNs = Math.min(frameNs / 20, random.nextInt(3) == 0 ? 0 : random.nextLong(3 * epsilonNs + 1));
        final int partitions = partitions(set);
        final int count = 1 + random.nextInt(MOST_WINDOWS);
        final List<TimePartitions.Window> windows = new ArrayList<>();
        long atNs = random.nextBoolean() ? 0 : random.nextLong(frameNs / 10);
        for (int w = 0; w < count; w++) {
            final long restNs = frameNs - atNs;
            final boolean last = w == count - 1;
            final long lengthNs = last && random.nextBoolean() ? restNs
                : (long) (restNs * (0.2 + 0.7 * random.nextDouble()));
            if (lengthNs <= guardNs + 1) {
                break;
            }
            windows.add(new TimePartitions.Window(1 + random.nextInt(partitions), atNs, lengthNs));
            atNs += lengthNs + (random.nextBoolean() ? 0 : random.nextLong((frameNs - atNs - lengthNs) / 5 + 1));
        }
        final long phaseNs = random.nextLong(frameNs);
        final boolean lending = random.nextBoolean();
        final TimePartitions table = windows.isEmpty() ? null : new TimePartitions(inner, frameNs, phaseNs, guardNs,
            lending, windows.toArray(new TimePartitions.Window[0]));
        // no partition may own the whole frame: the others would never be served
        return table != null && table.nextChangeNs(0) != Long.MAX_VALUE ? table : new TimePartitions(inner, frameNs,
            phaseNs, guardNs, lending, new TimePartitions.Window(1, 0, frameNs / 2));
    }

    private static boolean isAlone(final TaskSet set) {
        return random(set, 4).nextInt(4) == 0;
    }

    /** A table with one window: the whole frame, or all of it but a small part. */
    private static TimePartitions alone(final TaskSet set, final Policy inner) {
        final SplittableRandom random = random(set, 5);
        long longest = 0;
        for (final Task task : set.tasks()) {
            longest = Math.max(longest, task.periodNs());
        }
        final long frameNs = longest * (1 + random.nextInt(4));
        final long closedNs = random.nextBoolean() ? 0 : random.nextLong(frameNs / 50 + 1);
        return new TimePartitions(inner, frameNs, random.nextLong(frameNs), 0, random.nextBoolean(),
            new TimePartitions.Window(1, 0, frameNs - closedNs));
    }

    private static int partitions(final TaskSet set) {
        return 1 + random(set, 2).nextInt(3);
    }

    /** The partition of a task of the set; in most cases one that has a window. */
    static int partition(final TaskSet set, final String task) {
        if (isAlone(set)) {
            return 1;
        }
        final SplittableRandom random = random(set, 3 + task.hashCode());
        return random.nextInt(6) == 0 ? 0 : 1 + random.nextInt(partitions(set));
    }

    /** Applies a table and its partitions to a simulator. */
    static void apply(final TaskSet set, final TimePartitions table, final Simulator simulator) {
        simulator.setPolicy(table);
        for (int i = 0; i < set.tasks().size(); i++) {
            simulator.setAttributes(i, partition(set, set.tasks().get(i).name()), 0, OverrunAction.DEMOTE, 0, 0, 0);
        }
    }
}
