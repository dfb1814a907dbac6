/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.List;

/**
 * A configuration and what happens under it.
 *
 * @param wide whether tasks have partitions, windows and actions on overrun, and all policies are used
 * @param keepReady whether contexts of idle higher-priority tasks stay enabled
 */
record History(String policy, boolean preemptive, boolean optimistic, Unmanaged unmanaged, List<Action> actions,
    boolean wide, boolean keepReady) {
    static final long FRAME_NS = 100;
    static final long PHASE_NS = 7;
    static final long GUARD_NS = 3;
    /** Owners of the tenths of the frame. */
    static final int[] OWNERS = {1, 1, 1, 2, 2, 0, 1, 0, 0, 0};
    static final List<String> NARROW_POLICIES = List.of("fp", "edf", "rr");
    static final List<String> WIDE_POLICIES =
        List.of("fp", "edf", "rr", "classes", "partitions-fp", "partitions-edf");

    /** The same without preemption, or with both preemption and pre-grants. */
    History with(final boolean isPreemptive, final boolean isOptimistic) {
        return new History(policy, isPreemptive, isOptimistic, unmanaged, actions, wide, keepReady);
    }

    static Policy policyNamed(final String name) {
        if (!name.startsWith("partitions")) {
            return PolicyCatalog.builtIn().create(name);
        }
        final boolean edf = name.endsWith("edf");
        return new TimePartitions(PolicyCatalog.builtIn().create(edf ? "edf" : "fp"), FRAME_NS, PHASE_NS, GUARD_NS, edf,
            new TimePartitions.Window(2, 30, 20), new TimePartitions.Window(1, 0, 20),
            new TimePartitions.Window(1, 20, 10), new TimePartitions.Window(1, 60, 10));
    }

    static final int GPUS = 2;
    static final int TASKS = 11;
    static final int CONTEXTS = 6;

    SchedulerConfig config() {
        return new SchedulerConfig(policyNamed(policy), GPUS, TASKS, CONTEXTS, preemptive, optimistic, unmanaged);
    }
}
