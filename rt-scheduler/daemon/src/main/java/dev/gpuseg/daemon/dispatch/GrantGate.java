/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.ipc.Abi;

/**
 * Holds grants back until they are enforced. A real-time grant that needs other contexts off is written when the
 * enforcer has confirmed that; if nothing is left to disable it is written at once. A begin that did not wait has its
 * grant already: only its enforcement is recorded. Dispatcher thread only, allocates nothing.
 *
 * <p>Each decision is told twice, as {@link DecisionApplier} works: {@code answer…} writes what a client waits for,
 * {@code record…} writes counters and journal.
 */
final class GrantGate {
    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final DispatcherJournal journal;
    private final Counters counters;
    private final boolean preemptive;
    /** By GPU: the real-time segment whose enforcement is awaited. */
    private final TaskEntry[] awaited;
    private final long[] awaitedTicket;
    private final long[] awaitedVersion;

    GrantGate(final SegmentScheduler scheduler, final DesiredStates desired, final DispatcherJournal journal,
        final Counters counters, final boolean preemptive) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.journal = journal;
        this.counters = counters;
        this.preemptive = preemptive;
        awaited = new TaskEntry[desired.gpus()];
        awaitedTicket = new long[desired.gpus()];
        awaitedVersion = new long[desired.gpus()];
    }

    /** A segment was granted: writes the grant word, or notes that it has to wait. */
    void answerGrant(final TaskEntry task, final int gpu, final long ticket) {
        if (task.optimistic) {
            return;   // its thread did not wait, and its slot's line is best left in its cache
        }
        if (scheduler.isRealTime(task.id) && !desired.isSettled(gpu)) {
            task.grantPending = true;
        } else {
            write(task, ticket);
        }
    }

    /** After {@link #answerGrant} of all decisions of an event. */
    void recordGrant(final TaskEntry task, final int gpu, final long ticket) {
        if (task.grantPending) {
            journal.decided(task, gpu, ticket);
        } else {
            recordWritten(task, ticket);
        }
        recordRunning(task, gpu, ticket);
    }

    /** A segment runs, granted or resumed: notes when the contexts that it preempts are disabled. */
    void recordRunning(final TaskEntry task, final int gpu, final long ticket) {
        if (scheduler.state(task.id) != SegmentState.RUNNING) {
            return;
        }
        if (!scheduler.isRealTime(task.id)) {
            if (task.grantPending) {   // demoted before it was enforced
                finish(task, ticket);
            }
            return;
        }
        if (desired.isSettled(gpu)) {
            if (task.grantPending) {   // the enforcer was quick
                finish(task, ticket);
            }
            recordEnforced(task, gpu, ticket);
        } else {
            awaited[gpu] = task;
            awaitedTicket[gpu] = ticket;
            awaitedVersion[gpu] = desired.disableVersion(gpu);
        }
    }

    /** A segment was preempted: its enforcement is awaited no longer; a pending grant stays pending. */
    void recordPreempted(final TaskEntry task, final int gpu) {
        forget(task, gpu);
    }

    /** A segment used up its budget, and the scheduler has done what the task's overrun action says. */
    void recordOverrun(final TaskEntry task, final long ticket) {
        if (scheduler.ticket(task.id) != ticket) {
            task.forcedTicket = ticket;   // a gate cannot preempt: the scheduler ended the segment
            task.grantPending = false;
            journal.forcedEnd(task, ticket);
        } else if (task.grantPending && !scheduler.isRealTime(task.id)
            && scheduler.state(task.id) == SegmentState.RUNNING) {
            finish(task, ticket);   // demoted before it was enforced
        }
    }

    /** The share of a task's user is used up: a begin that waits for enforcement need not any more. */
    void recordShare(final TaskEntry task, final boolean spent) {
        if (spent && task.grantPending && scheduler.state(task.id) == SegmentState.RUNNING) {
            finish(task, scheduler.ticket(task.id));
        }
    }

    /** A segment ended, or its task is closed: no grant is pending and no enforcement is awaited for it. */
    void forget(final TaskEntry task) {
        task.grantPending = false;
        forget(task, task.gpu());
    }

    private void forget(final TaskEntry task, final int gpu) {
        if (awaited[gpu] == task) {
            awaited[gpu] = null;
        }
    }

    /**
     * The enforcer of a GPU may have come further.
     *
     * @param enforcedVersion read before the results that led to it were taken
     * @return 1 if an awaited segment is enforced now, else 0
     */
    int poll(final int gpu, final long enforcedVersion) {
        final TaskEntry task = awaited[gpu];
        if (task == null || enforcedVersion < awaitedVersion[gpu]) {
            return 0;
        }
        awaited[gpu] = null;
        if (task.grantPending) {
            finish(task, awaitedTicket[gpu]);
        }
        recordEnforced(task, gpu, awaitedTicket[gpu]);
        return 1;
    }

    private void finish(final TaskEntry task, final long ticket) {
        write(task, ticket);
        counters.increment(Counter.GRANTS_AFTER_DISABLE);
        recordWritten(task, ticket);
    }

    private static void write(final TaskEntry task, final long ticket) {
        task.grantPending = false;
        task.slot.state(Abi.SEGMENT_RUNNING);
        task.slot.grant(ticket, Abi.VERDICT_GRANTED);
    }

    private void recordWritten(final TaskEntry task, final long ticket) {
        counters.increment(Counter.GRANTS);
        journal.granted(task, ticket);
    }

    private void recordEnforced(final TaskEntry task, final int gpu, final long ticket) {
        final Enforcement enforcer = desired.enforcer(gpu);
        if (enforcer.isIncomplete()) {
            counters.increment(Counter.GRANTS_UNENFORCED);
        } else if (preemptive && scheduler.policy().enforces()) {
            journal.enforced(task, gpu, ticket, enforcer.enforcedNs());
        }
    }
}
