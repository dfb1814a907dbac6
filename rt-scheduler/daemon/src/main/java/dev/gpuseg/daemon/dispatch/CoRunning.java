/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.CoRunBudget;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.ipc.Abi;

/**
 * Leaves contexts of best-effort processes enabled beside a real-time segment, as far as the {@link CoRunBudget} of its
 * task allows: it stands between what the scheduler wants disabled and what enforcers are told. The scheduler's
 * decisions stay what they are.
 *
 * <p>Only a segment counts that began without waiting while no other real-time segment ran, and ran to its end without
 * being preempted: the time of every other one says nothing about what ran beside it. When such a segment is over, or
 * no longer runs, what was left enabled is disabled unless the scheduler wants it enabled by then.
 *
 * <p>Dispatcher thread only. A task's first begin allocates its budget; nothing else allocates.
 */
final class CoRunning {
    private final int percent;
    private final int maxContexts;
    private final DesiredStates desired;
    private final SegmentScheduler scheduler;
    private final TaskTable tasks;
    private final Counters counters;
    /** By GPU: the task whose segment is measured, null if none is; its ticket, and when it began. */
    private final TaskEntry[] measured;
    private final long[] ticket;
    private final long[] begunNs;
    /** By GPU: the begin of the measured segment is being decided, so contexts may be left enabled. */
    private final boolean[] open;
    private final int[][] beside;
    private final int[] besideCount;
    /** Contexts that the scheduler wants disabled and that are not. */
    private final boolean[] withheld;
    /** Contexts that were told to have long kernels: nothing is measured to find them unfit. */
    private final boolean[] isLong;

    /**
     * @param percent     the budget of each task, per cent of the time of a segment that runs alone
     * @param maxContexts highest context id
     * @param desired     what enforcers are told
     * @param scheduler   decides
     * @param tasks       the open tasks
     * @param counters    where it is counted
     */
    CoRunning(final int percent, final int maxContexts, final DesiredStates desired, final SegmentScheduler scheduler,
        final TaskTable tasks, final Counters counters) {
        this.percent = percent;
        this.maxContexts = maxContexts;
        this.desired = desired;
        this.scheduler = scheduler;
        this.tasks = tasks;
        this.counters = counters;
        final int gpus = desired.gpus();
        measured = new TaskEntry[gpus];
        ticket = new long[gpus];
        begunNs = new long[gpus];
        open = new boolean[gpus];
        beside = new int[gpus][maxContexts + 1];
        besideCount = new int[gpus];
        withheld = new boolean[maxContexts + 1];
        isLong = new boolean[maxContexts + 1];
        desired.onForget(this::forget);
    }

    /** A segment is about to begin; the scheduler is told next. */
    void begin(final TaskEntry task, final long ofTicket, final long atNs) {
        final int gpu = task.gpu();
        final int running = scheduler.runningTask(gpu);
        if (!task.isRealTime() || !task.optimistic || measured[gpu] != null
            || running != SegmentScheduler.NONE && scheduler.isRealTime(running)) {
            return;
        }
        if (task.coRun == null) {
            task.coRun = new CoRunBudget(percent, maxContexts);
        }
        task.coRun.begin();
        measured[gpu] = task;
        ticket[gpu] = ofTicket;
        begunNs[gpu] = atNs;
        open[gpu] = true;
    }

    /** A segment is about to end, by its client; the scheduler is told next. */
    void end(final TaskEntry task, final long ofTicket, final long atNs) {
        final int gpu = task.gpu();
        if (measured[gpu] == task && ticket[gpu] == ofTicket && runs(gpu)) {
            final long before = task.coRun.heldCount();
            task.coRun.observed(Math.max(0, atNs - begunNs[gpu]), beside[gpu], besideCount[gpu]);
            counters.add(Counter.CO_RUN_UNFIT, task.coRun.heldCount() - before);
        }
    }

    /** The scheduler wants a context disabled. Returns whether it is left enabled. */
    boolean spares(final int gpu, final int contextId) {
        if (!open[gpu] || isLong[contextId] || !tasks.isBestEffort(contextId)) {
            return false;
        }
        measured[gpu].coRun.goesFirst(contextId, tasks.kernelClass(contextId) == Abi.KERNELS_SMALL);
        if (!measured[gpu].coRun.mayRunBeside(contextId)) {
            return false;
        }
        withheld[contextId] = true;
        beside[gpu][besideCount[gpu]++] = contextId;
        return true;
    }

    /** Whether the kernels of a context fill the GPU for longer than the bound on work in flight: then it is unfit. */
    void isLong(final int contextId, final boolean now) {
        if (now && !isLong[contextId]) {
            counters.increment(Counter.CO_RUN_UNFIT);
        }
        isLong[contextId] = now;
    }

    /** The scheduler wants a context enabled. */
    void enabled(final int contextId) {
        withheld[contextId] = false;
    }

    /** An event is decided and about to be published. */
    void follow(final int gpu) {
        if (open[gpu]) {
            open[gpu] = false;
            if (besideCount[gpu] > 0) {
                counters.increment(Counter.CO_RUN_SEGMENTS);
            }
        }
        if (measured[gpu] != null && !runs(gpu)) {
            measured[gpu] = null;
            revoke(gpu);
        }
    }

    private boolean runs(final int gpu) {
        final int id = measured[gpu].id;
        return tasks.get(id) == measured[gpu] && scheduler.ticket(id) == ticket[gpu]
            && scheduler.state(id) == SegmentState.RUNNING && scheduler.isRealTime(id);
    }

    private void revoke(final int gpu) {
        for (int i = 0; i < besideCount[gpu]; i++) {
            final int contextId = beside[gpu][i];
            if (withheld[contextId]) {
                withheld[contextId] = false;
                desired.set(gpu, contextId, false);
            }
        }
        besideCount[gpu] = 0;
    }

    /** Its id may be used again. */
    private void forget(final int gpu, final int contextId) {
        withheld[contextId] = false;
        isLong[contextId] = false;
        final int[] list = beside[gpu];
        for (int i = 0; i < besideCount[gpu]; i++) {
            if (list[i] == contextId) {
                list[i] = list[--besideCount[gpu]];
            }
        }
        tasks.forEach(task -> {
            if (task.coRun != null) {
                task.coRun.forget(contextId);
            }
        });
    }
}
