/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.assign.PriorityAssignment;
import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.TurnLimits;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Random task sets of one GPU for theorem 16 of {@code docs/turns.md}; functions of seed and number alone. */
public final class TurnSets {
    private static final int POINT = 900;
    private static final long US = 1_000;
    private static final long MS = 1_000_000;
    /** Cost of a switch between contexts. Source: measured on H100 and H200, 0.165 ms. */
    private static final long THETA_NS = 200 * US;
    /** CUDA's time slice. Source: measured on H100 and H200. */
    private static final long BORN_NS = 2_048 * US;

    private TurnSets() {
    }

    /**
     * A set of a robot: 3 to 8 tasks of 2 to 100 ms with windows of 0.1 to 10 ms, three in four with one, rate
     * monotonic, on three cores.
     *
     * @param seed      of all sets
     * @param k         its number
     * @param epsilonNs what an update takes
     * @param turns     how best effort takes turns
     * @return the set
     */
    public static TaskSet robot(final long seed, final long k, final long epsilonNs, final TurnLimits turns) {
        final SplittableRandom random = Seeds.random(seed, POINT, k);
        final int count = 3 + random.nextInt(6);
        final int cpus = 3;
        final double utilisation = 0.2 + 0.6 * random.nextDouble();
        final double[] share = new double[count];
        double sum = 0;
        for (int i = 0; i < count; i++) {
            share[i] = 0.1 + random.nextDouble();
            sum += share[i];
        }
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final long period = logarithmic(random, 2 * MS, 100 * MS);
            final List<Segment> segments = new ArrayList<>();
            segments.add(new Segment.Cpu((long) (period * 0.1 * random.nextDouble())));
            if (random.nextInt(4) != 0) {
                final long window = Math.max(100 * US, Math.min(10 * MS, (long) (period * utilisation * share[i]
                    / sum)));
                segments.add(new Segment.Gpu(window / 10, window - window / 10));
            }
            tasks.add(new Task("t" + i, 1 + i % cpus, 0, period, period, 0, 0, 0, 0, false, segments));
        }
        final Platform platform = new Platform(cpus, List.of(new Gpu(epsilonNs, Math.max(0, epsilonNs - THETA_NS),
            THETA_NS, BORN_NS)), true, null).withLimits(new PlatformLimits(1000, true, 0, 0, 0, 0, turns));
        return PriorityAssignment.of("rm").assign(new TaskSet("robot-" + k, platform, WaitMode.SUSPEND, tasks), null);
    }

    /**
     * A set of the campaign, with turns: slices, contexts, newcomers and bursts at random; every third has one task
     * with windows for each GPU, as the daemon's turns want it. Processes and stops of other causes are taken out.
     *
     * @param seed of all sets
     * @param k    its number
     * @return the set; threads suspend
     */
    public static TaskSet mixed(final long seed, final long k) {
        return withTurns(CampaignSets.mixed(seed, k), seed, k);
    }

    /** Another set in the same way. */
    static TaskSet withTurns(final TaskSet set, final long seed, final long k) {
        final SplittableRandom random = Seeds.random(seed, POINT + 1, k);
        long shortest = Long.MAX_VALUE;
        for (final Task task : set.tasks()) {
            shortest = Math.min(shortest, task.periodNs());
        }
        final TurnLimits turns = new TurnLimits(shortest / (20 + random.nextInt(400)) + 1, 1 + random.nextInt(3));
        final long delay = random.nextInt(3) == 0 ? shortest / (1 + random.nextInt(10)) + 1 : 0;
        final PlatformLimits limits = new PlatformLimits(set.platform().limits().clockPermille(), false, delay,
            delay == 0 ? 0
            : delay + 1 + random.nextLong(4 * shortest), 0, 0, turns);
        final boolean alone = random.nextInt(3) == 0;
        final boolean[] taken = new boolean[Platform.MAX_GPUS];
        final List<Task> tasks = new ArrayList<>();
        for (final Task task : set.tasks()) {
            final List<Segment> segments = new ArrayList<>();
            final boolean keeps = !alone || task.bestEffort() || !taken[task.gpu()];
            taken[task.gpu()] |= task.gpuSegmentCount() > 0 && !task.bestEffort();
            for (final Segment segment : task.segments()) {
                if (!(segment instanceof Segment.Gpu gpu)) {
                    segments.add(segment);
                } else if (keeps) {
                    segments.add(gpu.withBursts(random.nextBoolean() ? 1 : 1 + random.nextInt(4)));
                }
            }
            if (segments.isEmpty()) {
                segments.add(new Segment.Cpu(0));
            }
            tasks.add(task.inProcess(null).withSegments(segments));
        }
        final long thetaNs = random.nextBoolean() ? turns.sliceNs() / (1 + random.nextInt(4)) : 0;
        return set.withPlatform(set.platform().withLimits(limits).withGpus(set.platform().gpus().stream().map(gpu ->
            new Gpu(gpu.epsilonNs(), 0, thetaNs, gpu.timesliceNs())).toList())).withTasks(tasks)
            .withMode(WaitMode.SUSPEND);
    }

    private static long logarithmic(final SplittableRandom random, final long least, final long most) {
        return Math.round(least * Math.pow((double) most / least, random.nextDouble()));
    }
}
