/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/** Small random sets with distinct, deadline-monotonic priorities; light enough that many are schedulable. */
public final class RandomSets {
    private static final long MS = 1_000_000L;

    private RandomSets() {
    }

    public static TaskSet of(final long seed) {
        final SplittableRandom random = new SplittableRandom(seed);
        final int cpus = 1 + random.nextInt(3);
        final int gpus = 1 + random.nextInt(2);
        final List<Gpu> platform = new ArrayList<>();
        for (int g = 0; g < gpus; g++) {
            platform.add(new Gpu(random.nextInt(3) * MS / 2, 0, random.nextInt(3) * 100_000L, MS));
        }
        final int count = 2 + random.nextInt(6);
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final long period = (20 + 20L * i + random.nextInt(20)) * MS;
            final long deadline = period - random.nextInt(3) * MS;
            final boolean bestEffort = i > 1 && random.nextInt(6) == 0;
            final List<Segment> segments = new ArrayList<>();
            segments.add(new Segment.Cpu(random.nextLong(period / 20)));
            final int windows = random.nextInt(3);
            for (int j = 0; j < windows; j++) {
                final long host = random.nextLong(MS);
                final long device = random.nextLong(period / 30);
                final long total = random.nextBoolean() ? host + device : Math.max(host, device);
                segments.add(new Segment.Gpu(host, device, total));
                segments.add(new Segment.Cpu(random.nextLong(MS)));
            }
            final int priority = bestEffort ? 0 : 99 - i;
            tasks.add(new Task("t" + i, 1 + random.nextInt(cpus), random.nextInt(gpus), period, deadline,
                bestEffort ? 0 : random.nextInt(2) * MS, bestEffort ? 0 : random.nextInt(2) * 100_000L, priority,
                priority,
                bestEffort, segments));
        }
        return new TaskSet("random-" + seed, new Platform(cpus, platform, false, null), WaitMode.SUSPEND, tasks);
    }
}
