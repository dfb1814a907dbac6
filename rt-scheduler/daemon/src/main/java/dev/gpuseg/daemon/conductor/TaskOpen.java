/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.OverrunAction;

/**
 * A request to open a task: validated, admitted, durations already defaulted ({@code gpuPriority}, {@code deadlineNs}).
 *
 * @param correlation to be repeated in {@link ConductorProxy#taskOpened}
 * @param clientId    the client that asks
 * @param name        printable, unique within the client
 * @param priority    0 best effort, 1..99
 * @param gpuPriority 0..99, at the GPU
 * @param gpu         index, from 0
 * @param optimistic  whether begin may return before enforcement
 * @param periodNs    0 = not periodic
 * @param deadlineNs  relative, 0 = none
 * @param budgetNs    longest time that a segment may hold the GPU, preempted time excluded, 0 = none
 * @param overrun     what follows when a budget is used up
 * @param windowNs    longest time from grant to end, preempted time included, 0 = none
 * @param partition   time partition, 0 = none
 * @param weight      share of its process in best-effort time, 1..10000; 0 = leave it as it is
 * @param boost       SCHED_FIFO priority at which its thread runs inside its windows, 1..99; 0 = the thread's own. The
 *                    library raises the thread; the daemon only knows of it
 * @param hintLeadNs  how far ahead of a begin it may give a hint; earlier ones are ignored and counted
 * @param share       what the real-time segments of its user together may use of the GPU, percent; 100 = all
 * @param reserve     the part of the GPU's multiprocessors that it has for itself, percent; 0 = none
 */
public record TaskOpen(long correlation, int clientId, String name, int priority, int gpuPriority, int gpu,
    boolean optimistic, long periodNs, long deadlineNs, long budgetNs, OverrunAction overrun, long windowNs,
    int partition, int weight, int boost, long hintLeadNs, int share, int reserve) {
    /** {@link #share} without a limit. */
    public static final int WHOLE_GPU = 100;

    /** A task that may give hints as early as it likes. */
    public TaskOpen(final long correlation, final int clientId, final String name, final int priority,
        final int gpuPriority, final int gpu, final boolean optimistic, final long periodNs, final long deadlineNs,
        final long budgetNs, final OverrunAction overrun, final long windowNs, final int partition, final int weight,
        final int boost) {
        this(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs, budgetNs,
            overrun, windowNs, partition, weight, boost, Long.MAX_VALUE, WHOLE_GPU, 0);
    }

    /** A task that is demoted on overrun and says nothing about windows, partitions, weights and boosts. */
    public TaskOpen(final long correlation, final int clientId, final String name, final int priority,
        final int gpuPriority, final int gpu, final boolean optimistic, final long periodNs, final long deadlineNs,
        final long budgetNs) {
        this(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs, budgetNs,
            OverrunAction.DEMOTE, 0, 0, 0, 0);
    }

    /**
     * The same after a change by an administrator.
     *
     * @param newPriority    0..99
     * @param newGpuPriority 0..99
     * @param newOverrun     what follows when a budget is used up
     * @return a copy
     */
    public TaskOpen with(final int newPriority, final int newGpuPriority, final OverrunAction newOverrun) {
        return new TaskOpen(correlation, clientId, name, newPriority, newGpuPriority, gpu, optimistic, periodNs,
            deadlineNs, budgetNs, newOverrun, windowNs, partition, weight, boost, hintLeadNs, share, reserve);
    }

    /** A copy in a time partition, 0 = none. */
    public TaskOpen withPartition(final int newPartition) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            budgetNs, overrun, windowNs, newPartition, weight, boost, hintLeadNs, share, reserve);
    }

    /** A copy with a boost, 0..99. */
    public TaskOpen withBoost(final int newBoost) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            budgetNs, overrun, windowNs, partition, weight, newBoost, hintLeadNs, share, reserve);
    }

    /**
     * The same with a budget.
     *
     * @param newBudgetNs 0 = none
     * @param newOverrun  what follows when it is used up
     * @return a copy
     */
    TaskOpen withBudget(final long newBudgetNs, final OverrunAction newOverrun) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            newBudgetNs, newOverrun, windowNs, partition, weight, boost, hintLeadNs, share, reserve);
    }

    /** A copy with a limit of its hints, {@link Long#MAX_VALUE} = none. */
    public TaskOpen withHintLead(final long newHintLeadNs) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            budgetNs, overrun, windowNs, partition, weight, boost, newHintLeadNs, share, reserve);
    }

    /** A copy with a limit of what its user may use, percent, 100 = none. */
    TaskOpen withShare(final int newShare) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            budgetNs, overrun, windowNs, partition, weight, boost, hintLeadNs, newShare, reserve);
    }

    /** A copy with a part of the GPU for itself, percent, 0 = none. */
    public TaskOpen withReserve(final int newReserve) {
        return new TaskOpen(correlation, clientId, name, priority, gpuPriority, gpu, optimistic, periodNs, deadlineNs,
            budgetNs, overrun, windowNs, partition, weight, boost, hintLeadNs, share, newReserve);
    }
}
