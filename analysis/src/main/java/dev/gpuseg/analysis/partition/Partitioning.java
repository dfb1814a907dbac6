/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.partition;

import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * Bin packing of tasks, largest load first: to the GPUs by (G + 2 eps eta) / T, then to the cores by C + Gm over T
 * (busy: C + G + 2 eps eta over T). Loads are counted in units of 2^-30 of the resource, rounded up, so that no
 * order depends on the rounding of doubles. A load above 1 is placed as well: the analysis refuses the set, not the
 * packing.
 */
public enum Partitioning {
    /** The resource with the least load: spreads the tasks. */
    WFD,
    /** The first resource that the task fits; if none, the least loaded. */
    FFD,
    /** The fullest resource that the task fits; if none, the least loaded. */
    BFD;

    private static final int UNIT_BITS = 30;
    private static final long FULL = 1L << UNIT_BITS;

    /**
     * Finds a rule by its name.
     *
     * @param name {@code wfd}, {@code ffd} or {@code bfd}
     * @return the rule
     * @throws IllegalArgumentException if there is none of that name
     */
    public static Partitioning of(final String name) {
        for (final Partitioning rule : values()) {
            if (rule.name().toLowerCase(Locale.ROOT).equals(name)) {
                return rule;
            }
        }
        throw new IllegalArgumentException("partitioning '" + name + "' does not exist; known are wfd, ffd, bfd");
    }

    /**
     * Places every task on a core, and every GPU task on a GPU; cores and GPUs given in the set are replaced.
     *
     * @param set tasks in any placement
     * @return the placed set
     * @throws InvalidModelException if there are GPU tasks but no GPU
     */
    public TaskSet partition(final TaskSet set) {
        final int count = set.tasks().size();
        final TaskSet slowed = set.slowed();
        final int[] gpu = new int[count];
        if (!set.platform().gpus().isEmpty()) {
            final long[] gpuLoad = new long[count];
            for (int i = 0; i < count; i++) {
                final Task task = slowed.tasks().get(i);
                gpuLoad[i] = task.gpuSegmentCount() == 0 ? 0
                    : load(withUpdates(task.gpuNs(), task, smallestEpsilon(set)), task.periodNs());
            }
            pack(gpuLoad, set.platform().gpus().size(), gpu);
        }
        final long[] cpuLoad = new long[count];
        final int[] cpu = new int[count];
        for (int i = 0; i < count; i++) {
            final Task task = slowed.tasks().get(i);
            final boolean spins = set.mode() == WaitMode.BUSY && task.gpuSegmentCount() > 0;
            final BigInteger work = spins
                ? withUpdates(task.cpuNs() + task.gpuNs(), task, set.platform().gpus().get(gpu[i]).epsilonNs())
                : BigInteger.valueOf(task.cpuNs() + task.hostNs());
            cpuLoad[i] = load(work, task.periodNs());
        }
        pack(cpuLoad, set.platform().cpus(), cpu);
        final List<Task> placed = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            placed.add(set.tasks().get(i).withPlacement(cpu[i] + 1, gpu[i]));
        }
        return set.withTasks(placed);
    }

    private static long smallestEpsilon(final TaskSet set) {
        return set.platform().gpus().stream().mapToLong(g -> g.epsilonNs()).min().orElse(0);
    }

    private static BigInteger withUpdates(final long work, final Task task, final long epsilonNs) {
        return BigInteger.valueOf(epsilonNs).multiply(BigInteger.valueOf(2L * task.gpuSegmentCount()))
            .add(BigInteger.valueOf(work));
    }

    private static long load(final BigInteger work, final long period) {
        final BigInteger[] parts = work.shiftLeft(UNIT_BITS)
            .divideAndRemainder(BigInteger.valueOf(period));
        final BigInteger units = parts[1].signum() == 0 ? parts[0] : parts[0].add(BigInteger.ONE);
        // Beyond 2^40 times the resource the exact load no longer matters, and sums must not overflow.
        return units.bitLength() > 40 ? 1L << 40 : units.longValue();
    }

    private void pack(final long[] load, final int bins, final int[] place) {
        final Integer[] order = new Integer[load.length];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, Comparator.comparingLong(i -> -load[i]));
        final long[] used = new long[bins];
        for (final int i : order) {
            place[i] = choose(used, load[i], load.length);
            used[place[i]] += load[i];
        }
    }

    private int choose(final long[] used, final long load, final int slack) {
        int least = 0;
        int fit = -1;
        for (int b = 0; b < used.length; b++) {
            if (used[b] < used[least]) {
                least = b;
            }
            // Each load was rounded up by less than one unit: a resource filled exactly still counts as fitting.
            final boolean fits = used[b] + load <= FULL + slack;
            if (fits && (fit < 0 || this == BFD && used[b] > used[fit])) {
                fit = b;
            }
        }
        return this == WFD || fit < 0 ? least : fit;
    }
}
