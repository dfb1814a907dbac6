/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.daemon.conductor.TaskOpen;

/**
 * A task that was admitted, or for which a place is kept after a restart.
 *
 * @param request     what it asked for
 * @param uid         its user
 * @param clientId    its client, 0 = a place that is kept
 * @param pid         its process, 0 = a place that is kept
 * @param taskId      its id, 0 = not opened yet
 * @param priority    on the cores, after hints
 * @param gpuPriority on the GPU, after hints
 * @param source      where its model comes from
 * @param keptUntilNs when the place is given up, CLOCK_MONOTONIC ns; undefined unless it is kept
 */
record Admitted(TaskOpen request, int uid, int clientId, int pid, int taskId, int priority, int gpuPriority,
    Source source, long keptUntilNs) {
    /** Where the model of a task comes from. */
    enum Source {
        /** From the task-set file. */
        DECLARED,
        /** One window of its budget per period. */
        BUDGET,
        /** It needs no model: it is disabled whenever a real-time task uses the GPU. */
        BEST_EFFORT,
        /** From nowhere: nothing is proven while it is open. */
        UNKNOWN
    }

    boolean isKept() {
        return clientId == 0;
    }

    boolean isRealTime() {
        return priority > 0;
    }

    Admitted withTaskId(final int id) {
        return new Admitted(request, uid, clientId, pid, id, priority, gpuPriority, source, keptUntilNs);
    }

    Admitted withPriorities(final int newPriority, final int newGpuPriority) {
        return new Admitted(request, uid, clientId, pid, taskId, newPriority, newGpuPriority, source, keptUntilNs);
    }

    Admitted withSource(final Source newSource) {
        return new Admitted(request, uid, clientId, pid, taskId, priority, gpuPriority, newSource, keptUntilNs);
    }
}
