/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import java.util.List;

/**
 * A process that the scheduler knows.
 *
 * @param pid        its id
 * @param startTicks its start, which tells a reused pid
 * @param name       what it is called
 * @param registered whether it is a client
 * @param contexts   its context on each GPU
 */
public record ProcessView(int pid, long startTicks, String name, boolean registered, List<Integer> contexts) {
    /** Copies the list. */
    public ProcessView {
        contexts = List.copyOf(contexts);
    }
}
