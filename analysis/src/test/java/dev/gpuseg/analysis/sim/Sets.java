/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.Gpu;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.PlatformLimits;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.util.List;

/** Task sets for tests, in milliseconds. */
public final class Sets {
    /** One millisecond. */
    public static final long MS = 1_000_000L;

    private Sets() {
    }

    /**
     * A CPU segment.
     *
     * @param ms length
     * @return the segment
     */
    public static Segment cpu(final double ms) {
        return new Segment.Cpu(ns(ms));
    }

    /**
     * A GPU segment.
     *
     * @param hostMs   host part
     * @param deviceMs device part
     * @return the segment
     */
    public static Segment gpu(final double hostMs, final double deviceMs) {
        return new Segment.Gpu(ns(hostMs), ns(deviceMs));
    }

    /**
     * A real-time task with one priority.
     *
     * @param name     its name
     * @param cpu      core
     * @param priority on core and GPU
     * @param periodMs period and deadline
     * @param segments what it does
     * @return the task
     */
    public static Task task(final String name, final int cpu, final int priority, final double periodMs,
        final Segment... segments) {
        return new Task(name, cpu, 0, ns(periodMs), ns(periodMs), 0, 0, priority, priority, priority == 0,
            List.of(segments));
    }

    /**
     * The same task with another GPU.
     *
     * @param task a task
     * @param gpu  index of the GPU
     * @return the changed copy
     */
    public static Task onGpu(final Task task, final int gpu) {
        return task.withPlacement(task.cpu(), gpu);
    }

    /**
     * A set on one GPU.
     *
     * @param mode      wait mode
     * @param cpus      cores
     * @param epsilonMs runlist update delay
     * @param tasks     tasks
     * @return the set
     */
    public static TaskSet set(final WaitMode mode, final int cpus, final double epsilonMs, final Task... tasks) {
        return new TaskSet("test", Platform.of(cpus, new Gpu(ns(epsilonMs), 0, 0, MS)), mode, List.of(tasks));
    }

    /**
     * The same set on a platform that says what its bounds are conditional on: no new contexts, the lowest clock.
     *
     * @param set a set
     * @return the copy
     */
    public static TaskSet stated(final TaskSet set) {
        return set.withPlatform(set.platform().withLimits(new PlatformLimits(PlatformLimits.CLOCK_MIN, true, 0, 0, 0,
            0)));
    }

    /**
     * The set that shows that the published bound does not hold for whole windows: the holder's host part is
     * preempted on its core while the GPU idles.
     *
     * @return core 1: hc (CPU only) above h; core 2: lo, which h delays
     */
    public static TaskSet windowGap() {
        final Task lo = new Task("lo", 2, 0, 100 * MS, 40 * MS, 0, 0, 1, 1, false, List.of(cpu(1), gpu(0, 10)));
        return set(WaitMode.SUSPEND, 2, 0, task("hc", 1, 9, 100, cpu(30)), task("h", 1, 8, 100, cpu(1), gpu(5, 5)), lo);
    }

    private static long ns(final double ms) {
        return Math.round(ms * MS);
    }
}
