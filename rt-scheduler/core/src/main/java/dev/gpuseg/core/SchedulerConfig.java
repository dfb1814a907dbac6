/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Objects;

/**
 * What a {@link SegmentScheduler} is built for. All memory is reserved from these numbers at construction.
 *
 * @param policy      decides among begun segments; may be replaced while running
 * @param gpuCount    number of GPUs, 1..{@value #GPUS_MAX}
 * @param maxTasks    highest task id, 1..{@value #TASKS_MAX}
 * @param maxContexts highest context id, 1..{@value #CONTEXTS_MAX}
 * @param preemptive  true if a context can be disabled (mechanism level 2 or 3); false for the gate,
 *                    which can only hold begins back
 * @param optimistic  whether tasks that allow it are pre-granted
 * @param unmanaged   how contexts of processes that never registered are treated
 */
public record SchedulerConfig(Policy policy, int gpuCount, int maxTasks, int maxContexts, boolean preemptive,
    boolean optimistic, Unmanaged unmanaged) {

    /** The most GPUs of one scheduler. */
    public static final int GPUS_MAX = 16;
    /** The most tasks of one scheduler. */
    public static final int TASKS_MAX = 1 << 16;
    /** The most contexts of one scheduler. */
    public static final int CONTEXTS_MAX = 1 << 16;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a number is out of its range
     * @throws NullPointerException     if policy or unmanaged is null
     */
    public SchedulerConfig {
        Objects.requireNonNull(policy, "policy");
        Objects.requireNonNull(unmanaged, "unmanaged");
        requireIn("gpuCount", gpuCount, GPUS_MAX);
        requireIn("maxTasks", maxTasks, TASKS_MAX);
        requireIn("maxContexts", maxContexts, CONTEXTS_MAX);
    }

    private static void requireIn(final String name, final int value, final int max) {
        if (value < 1 || value > max) {
            throw new IllegalArgumentException(name + " is " + value + "; it must be 1.." + max);
        }
    }
}
