/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.conductor.TaskOpen;
import java.util.Map;
import java.util.function.Consumer;

/** The open tasks by id, from 1. Dispatcher thread only; a look allocates nothing. */
final class TaskTable {
    static final int NONE = -1;

    private final TaskEntry[] tasks;
    /** No id above it was ever used. */
    private int highest;

    /**
     * @param maxTasks highest id
     */
    TaskTable(final int maxTasks) {
        tasks = new TaskEntry[maxTasks + 1];
    }

    int capacity() {
        return tasks.length - 1;
    }

    /** The open task of an id from a validated record, null if there is none. */
    TaskEntry get(final int id) {
        return tasks[id];
    }

    /** The open task of any number, null if there is none. */
    TaskEntry find(final int id) {
        return id > 0 && id < tasks.length ? tasks[id] : null;
    }

    /** The lowest free id, {@link #NONE} if all are taken. */
    int freeId() {
        for (int id = 1; id < tasks.length; id++) {
            if (tasks[id] == null) {
                return id;
            }
        }
        return NONE;
    }

    void add(final TaskEntry task) {
        tasks[task.id] = task;
        highest = Math.max(highest, task.id);
    }

    void remove(final TaskEntry task) {
        tasks[task.id] = null;
    }

    /** Some task that works on a context, null if there is none. */
    TaskEntry ofContext(final int contextId) {
        for (final TaskEntry task : tasks) {
            if (task != null && task.contextId == contextId) {
                return task;
            }
        }
        return null;
    }

    /** The shortest of the slices that are given to real-time tasks of a context, ns; 0 if none is. */
    long sliceNs(final int contextId, final Map<String, Long> slicesNs) {
        long shortest = 0;
        for (int id = 1; id <= highest && !slicesNs.isEmpty(); id++) {
            final Long given = isOf(id, contextId) && tasks[id].gpuRank() > 0 ? slicesNs.get(tasks[id].request.name())
                : null;
            shortest = given == null || shortest > 0 && shortest < given ? shortest : given;
        }
        return shortest;
    }

    /**
     * The least time that the deadline of a real-time task of a GPU leaves besides its budget, ns; 0 if one has
     * declared no deadline or no budget, {@link Long#MAX_VALUE} if there is none.
     */
    long leastSlackNs(final int gpu) {
        long least = Long.MAX_VALUE;
        for (int id = 1; id <= highest; id++) {
            final TaskEntry task = tasks[id];
            if (task != null && task.gpu() == gpu && task.gpuRank() > 0) {
                final TaskOpen of = task.request;
                least = Math.min(least, of.deadlineNs() > 0 && of.budgetNs() > 0
                    ? Math.max(0, of.deadlineNs() - of.budgetNs()) : 0);
            }
        }
        return least;
    }

    /** The calls that segments of a GPU go without are tried anew. */
    void tryCallsAnew(final int gpu) {
        for (int id = 1; id <= highest; id++) {
            if (tasks[id] != null && tasks[id].gpu() == gpu) {
                tasks[id].calls.tryAnew();
            }
        }
    }

    /** Whether some task's segments wait for what lower work has in flight: not best effort, and no room of its own. */
    boolean isAnyWaiting() {
        for (int id = 1; id <= highest; id++) {
            if (tasks[id] != null && tasks[id].gpuRank() > 0) {
                return true;
            }
        }
        return false;
    }

    /** Whether work of a context is in flight, as far as its tasks say. */
    boolean isInFlight(final int contextId) {
        for (int id = 1; id <= highest; id++) {
            if (isOf(id, contextId) && tasks[id].slot.isInFlight()) {
                return true;
            }
        }
        return false;
    }

    /** Since when none is, ns; 0 if its tasks never said that any was. */
    long drainedNs(final int contextId) {
        long sinceNs = 0;
        for (int id = 1; id <= highest; id++) {
            if (isOf(id, contextId)) {
                sinceNs = Math.max(sinceNs, tasks[id].slot.drainedNs());
            }
        }
        return sinceNs;
    }

    private boolean isOf(final int id, final int contextId) {
        return tasks[id] != null && tasks[id].contextId == contextId;
    }

    /** All open tasks, by id. Rare, may allocate. */
    void forEach(final Consumer<TaskEntry> visitor) {
        for (final TaskEntry task : tasks) {
            if (task != null) {
                visitor.accept(task);
            }
        }
    }
}
