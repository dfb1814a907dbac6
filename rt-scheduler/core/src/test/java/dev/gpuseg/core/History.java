/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.List;

/** A configuration and what happens under it. */
record History(String policy, boolean preemptive, boolean optimistic, Unmanaged unmanaged, List<Action> actions) {
    static final int GPUS = 2;
    static final int TASKS = 11;
    static final int CONTEXTS = 6;

    SchedulerConfig config() {
        return new SchedulerConfig(Policy.named(policy), GPUS, TASKS, CONTEXTS, preemptive, optimistic, unmanaged);
    }
}
