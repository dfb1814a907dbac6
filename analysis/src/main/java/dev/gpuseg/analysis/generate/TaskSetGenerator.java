/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.generate;

import dev.gpuseg.analysis.generate.Experiment.Range;
import dev.gpuseg.analysis.generate.Experiment.Utilisation;
import dev.gpuseg.analysis.generate.Experiment.Variant;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Draws task sets of an {@link Experiment}. Set k of point p under seed s is a function of (experiment, s, p, k)
 * alone, see {@link Seeds}. Priorities are rate monotonic, equal on CPU and GPU, ties in the order of generation. The
 * parts of a task add up exactly. Stateless and thread-safe.
 */
public final class TaskSetGenerator {
    private static final long NS_PER_MS = 1_000_000L;
    /** The grid of the published program: 0.01 ms. */
    private static final long GRID_NS = 10_000L;
    private static final int GRID = 100;

    private final Experiment experiment;

    /**
     * A generator.
     *
     * @param experiment what the sets look like
     */
    public TaskSetGenerator(final Experiment experiment) {
        this.experiment = experiment;
    }

    /**
     * One set.
     *
     * @param seed  of the experiment
     * @param point number of the point in a sweep; 0 elsewhere
     * @param index number of the set, from 0
     * @return the set; its id names seed, point and index
     */
    public TaskSet generate(final long seed, final long point, final long index) {
        final SplittableRandom random = Seeds.random(seed, point, index);
        final List<Draft> drafts = experiment.totalTasks() > 0 ? wholeSet(random) : coreByCore(random);
        if (experiment.variant() == Variant.AS_PUBLISHED) {
            markGpuTasks(random, drafts);
            final List<Draft> falling = new ArrayList<>(drafts);
            falling.sort(Comparator.comparingDouble((Draft d) -> d.utilisation).reversed());
            worstFit(falling);
        } else if (experiment.totalTasks() > 0) {
            worstFit(drafts);
        }
        for (int i = 0; i < drafts.size(); i++) {
            fill(random, drafts.get(i), i);
        }
        markBestEffort(random, drafts);
        final List<Gpu> gpus = Collections.nCopies(experiment.gpus(), experiment.gpu());
        return new TaskSet("s" + seed + "-p" + point + "-" + index, new Platform(experiment.cpus(), gpus, false, null),
            experiment.mode(), prioritise(drafts));
    }

    private List<Draft> coreByCore(final SplittableRandom random) {
        final List<Draft> drafts = new ArrayList<>();
        for (int cpu = 1; cpu <= experiment.cpus(); cpu++) {
            final int count = integer(random, experiment.tasksPerCpu());
            final double sum = grid(real(random, experiment.cpuUtilisation()));
            for (final double utilisation : utilisations(random, count, sum)) {
                drafts.add(new Draft(cpu, utilisation));
            }
        }
        if (experiment.variant() == Variant.AS_CODED) {
            for (final Draft draft : drafts) {
                draft.usesGpu = random.nextDouble() < real(random, experiment.gpuRatio());
            }
        }
        return drafts;
    }

    private List<Draft> wholeSet(final SplittableRandom random) {
        final int count = experiment.totalTasks();
        final List<Draft> drafts = new ArrayList<>(count);
        if (experiment.variant() == Variant.AS_CODED) {
            for (int i = 0; i < count; i++) {
                final Draft draft = new Draft(0, (1 + random.nextInt(5)) / 20.0);
                draft.usesGpu = random.nextDouble() < real(random, experiment.gpuRatio());
                drafts.add(draft);
            }
        } else {
            double sum = 0;
            for (int cpu = 0; cpu < experiment.cpus(); cpu++) {
                sum += real(random, experiment.cpuUtilisation());
            }
            for (final double utilisation : utilisations(random, count, sum)) {
                drafts.add(new Draft(0, utilisation));
            }
        }
        return drafts;
    }

    private double[] utilisations(final SplittableRandom random, final int count, final double sum) {
        final double[] values = experiment.utilisation() == Utilisation.UUNIFAST ? divide(random, count, sum)
            : Utilisations.drs(random, sum, Utilisations.bounds(count, 0),
                Utilisations.bounds(count, experiment.maxUtilisation()));
        if (experiment.variant() == Variant.AS_CODED) {
            for (int i = 0; i < count; i++) {
                values[i] = Math.max(1.0 / GRID, grid(values[i]));
            }
        }
        return values;
    }

    private double[] divide(final SplittableRandom random, final int count, final double sum) {
        return experiment.variant() == Variant.AS_CODED ? Utilisations.skewed(random, count, sum)
            : Utilisations.uunifast(random, count, sum);
    }

    /** The published text: a share of the tasks, drawn for the set, uses the GPU. */
    private void markGpuTasks(final SplittableRandom random, final List<Draft> drafts) {
        final int users = (int) Math.round(real(random, experiment.gpuRatio()) * drafts.size());
        final int[] order = permutation(random, drafts.size());
        for (int k = 0; k < users; k++) {
            drafts.get(order[k]).usesGpu = true;
        }
    }

    private void worstFit(final List<Draft> inOrder) {
        final double[] load = new double[experiment.cpus()];
        for (final Draft draft : inOrder) {
            int least = 0;
            for (int cpu = 1; cpu < load.length; cpu++) {
                if (load[cpu] < load[least]) {
                    least = cpu;
                }
            }
            load[least] += draft.utilisation;
            draft.cpu = least + 1;
        }
    }

    private void fill(final SplittableRandom random, final Draft draft, final int index) {
        final long periodMs = integer(random, experiment.periodMs());
        draft.periodNs = periodMs * NS_PER_MS;
        final long workNs = round(draft.utilisation * draft.periodNs);
        draft.gpu = index % experiment.gpus();
        if (!draft.usesGpu) {
            draft.segments = List.of(new Segment.Cpu(workNs));
            return;
        }
        final double ratio = real(random, experiment.gpuToCpu());
        final long cpuNs = Math.min(workNs, round(workNs / (1 + ratio)));
        final long gpuNs = workNs - cpuNs;
        if (cpuNs == workNs) {
            // nothing is left for the GPU (G / C = 0, or rounding): the task has no segment to begin
            draft.segments = List.of(new Segment.Cpu(workNs));
            return;
        }
        final int segments = integer(random, experiment.gpuSegments());
        final long[] gpuParts = split(random, gpuNs, segments);
        final long[] cpuParts = split(random, cpuNs, segments + 1);
        final List<Segment> parts = new ArrayList<>(2 * segments + 1);
        for (int j = 0; j < segments; j++) {
            final long host = Math.round(gpuParts[j] * real(random, experiment.hostToGpu()));
            parts.add(new Segment.Cpu(cpuParts[j]));
            parts.add(new Segment.Gpu(host, gpuParts[j] - host));
        }
        parts.add(new Segment.Cpu(cpuParts[segments]));
        draft.segments = parts;
    }

    /** Splits a time as a utilisation is split; the last part gets the rounding error. */
    private long[] split(final SplittableRandom random, final long totalNs, final int count) {
        final double[] shares = divide(random, count, totalNs);
        final long[] parts = new long[count];
        long rest = totalNs;
        for (int i = 0; i < count - 1; i++) {
            parts[i] = Math.min(rest, round(shares[i]));
            rest -= parts[i];
        }
        parts[count - 1] = rest;
        return parts;
    }

    private void markBestEffort(final SplittableRandom random, final List<Draft> drafts) {
        final int count = (int) (experiment.bestEffortRatio() * drafts.size() + 1e-9);
        final int[] order = permutation(random, drafts.size());
        for (int k = 0; k < count; k++) {
            drafts.get(order[k]).bestEffort = true;
        }
    }

    private List<Task> prioritise(final List<Draft> drafts) {
        final Integer[] order = new Integer[drafts.size()];
        Arrays.setAll(order, i -> i);
        Arrays.sort(order, Comparator.comparing((Integer i) -> drafts.get(i).bestEffort)
            .thenComparing(i -> drafts.get(i).periodNs));
        int priority = (int) drafts.stream().filter(d -> !d.bestEffort).count();
        final List<Task> tasks = new ArrayList<>(drafts.size());
        for (final int i : order) {
            final Draft d = drafts.get(i);
            final int own = d.bestEffort ? 0 : priority--;
            tasks.add(new Task("t" + i, d.cpu, d.usesGpu ? d.gpu : 0, d.periodNs, d.periodNs, 0, 0, own, own,
                d.bestEffort,
                d.segments));
        }
        return tasks;
    }

    private long round(final double ns) {
        return experiment.variant() == Variant.AS_CODED ? Math.round(ns / GRID_NS) * GRID_NS : Math.round(ns);
    }

    private double grid(final double value) {
        return experiment.variant() == Variant.AS_CODED ? Math.round(value * GRID) / (double) GRID : value;
    }

    private static int integer(final SplittableRandom random, final Range range) {
        return random.nextInt((int) range.least(), (int) range.most() + 1);
    }

    private static double real(final SplittableRandom random, final Range range) {
        return range.least() == range.most() ? range.least() : random.nextDouble(range.least(), range.most());
    }

    private static int[] permutation(final SplittableRandom random, final int size) {
        final int[] order = new int[size];
        for (int i = 0; i < size; i++) {
            order[i] = i;
        }
        for (int i = size - 1; i > 0; i--) {
            final int j = random.nextInt(i + 1);
            final int moved = order[i];
            order[i] = order[j];
            order[j] = moved;
        }
        return order;
    }

    /** A task that is being drawn. */
    private static final class Draft {
        private int cpu;
        private final double utilisation;
        private boolean usesGpu;
        private boolean bestEffort;
        private int gpu;
        private long periodNs;
        private List<Segment> segments;

        private Draft(final int cpu, final double utilisation) {
            this.cpu = cpu;
            this.utilisation = utilisation;
        }
    }
}
