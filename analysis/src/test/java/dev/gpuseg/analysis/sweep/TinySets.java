/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sweep;

import dev.gpuseg.analysis.generate.Seeds;
import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Two to four tasks with short periods of a similar length and much load, times in whole milliseconds: jobs of one task
 * follow each other closely, and bounds are small numbers of jobs.
 */
final class TinySets {
    private static final long MS = 1_000_000L;

    private TinySets() {
    }

    static TaskSet generate(final long seed, final long k) {
        final SplittableRandom random = Seeds.random(seed, 1, k);
        final int gpus = random.nextInt(4) == 0 ? 2 : 1;
        final List<Gpu> platform = new ArrayList<>();
        final long epsilonNs = random.nextInt(2) * (1 + random.nextInt(4)) * MS / 2;
        for (int g = 0; g < gpus; g++) {
            platform.add(new Gpu(epsilonNs, epsilonNs, 0, MS));
        }
        final int count = 2 + random.nextInt(3);
        final int cpus = 1 + random.nextInt(2);
        final boolean ties = random.nextInt(3) == 0;
        final List<Task> tasks = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            final long periodNs = (6 + random.nextInt(random.nextBoolean() ? 6 : 40)) * MS;
            final List<Segment> segments = new ArrayList<>();
            final int scale = 1 + random.nextInt(3);   // of a task: mostly CPU time, or mostly device time
            segments.add(new Segment.Cpu(random.nextInt(4) * MS / scale));
            for (int windows = random.nextInt(3); windows > 0; windows--) {
                final long host = random.nextInt(4) * MS / scale;
                final long device = random.nextInt(3) * scale * MS;
                segments.add(random.nextInt(4) == 0 ? new Segment.Gpu(host, device, Math.max(host, device))
                    : new Segment.Gpu(host, device));
                segments.add(new Segment.Cpu(random.nextInt(3) * MS / scale));
            }
            final int priority = ties ? (count - i + 1) / 2 : count - i;
            tasks.add(new Task("t" + i, 1 + random.nextInt(cpus), random.nextInt(gpus), periodNs, periodNs, 0, 0,
                priority, count - i, false, segments));
        }
        return new TaskSet("tiny" + seed + "-" + k, new Platform(cpus, platform, true, null), WaitMode.SUSPEND, tasks);
    }
}
