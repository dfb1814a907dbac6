/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.Abi;
import java.util.Arrays;

/**
 * Holds grants back until they are enforced. A real-time grant that needs other contexts off is written when the
 * enforcer has confirmed that; if nothing is left to disable it is written at once. A begin that did not wait has its
 * grant already: only its enforcement is recorded. Dispatcher thread only, allocates nothing.
 *
 * <p>The scheduler learns when a grant is given, because budgets count from then on
 * ({@code rt-scheduler/docs/adr/0051-late-grants.md}).
 *
 * <p>Each decision is told twice, as {@link DecisionApplier} works: {@code answer…} writes what a client waits for,
 * {@code record…} writes counters and journal.
 */
final class GrantGate {
    /** Version of a state that is not published yet: the segment goes without it so far. */
    private static final long UNPUBLISHED = Long.MAX_VALUE;

    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final DispatcherJournal journal;
    private final Counters counters;
    private final CycleClock clock;
    private final boolean preemptive;
    /** A waiting client was answered, and the clock was not read since. */
    private boolean answered;
    /** The decisions being recorded are the timer's. */
    private boolean ofTimer;
    /** By GPU: the real-time segments whose enforcement is awaited; several of one class can be. */
    private final Awaited[] awaited;

    /** What a begin may wait at most; null before admission says it. */
    private PromisedBounds promised;

    GrantGate(final SegmentScheduler scheduler, final DesiredStates desired, final DispatcherJournal journal,
        final Counters counters, final CycleClock clock, final boolean preemptive) {
        this.scheduler = scheduler;
        this.desired = desired;
        this.journal = journal;
        this.counters = counters;
        this.clock = clock;
        this.preemptive = preemptive;
        awaited = new Awaited[desired.gpus()];
        for (int g = 0; g < awaited.length; g++) {
            awaited[g] = new Awaited();
        }
    }

    /** From now on waits of begins are compared with its constants. */
    void compareWith(final PromisedBounds bounds) {
        promised = bounds;
    }

    /** Decisions of the timer follow, or not: their events tell a replay when the scheduler looked at the clock. */
    void ofTimer(final boolean follow) {
        ofTimer = follow;
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
            awaited[gpu].put(task, ticket, clock.nowNs(), desired.hasUnpublished(gpu) ? UNPUBLISHED
                : desired.disableVersion(gpu));
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
        awaited[gpu].remove(task);
    }

    /**
     * The enforcer of a GPU may have come further.
     *
     * @param enforcedVersion read before the results that led to it were taken
     * @return how many awaited segments are enforced now
     */
    int poll(final int gpu, final long enforcedVersion) {
        final Awaited of = awaited[gpu];
        int done = 0;
        for (int i = 0; i < of.count;) {
            if (of.version[i] == UNPUBLISHED && !desired.hasUnpublished(gpu)) {
                of.version[i] = desired.disableVersion(gpu);
            }
            if (enforcedVersion < of.version[i]) {
                i++;
                continue;
            }
            final TaskEntry task = of.task[i];
            final long ticket = of.ticket[i];
            final long decidedNs = of.decidedNs[i];
            of.removeAt(i);
            if (task.grantPending) {
                finish(task, ticket);
            }
            recordEnforced(task, gpu, ticket);
            compareWait(task, gpu, decidedNs);
            done++;
        }
        return done;
    }

    /** A segment that goes without the call for a while does not wait for it. */
    private void compareWait(final TaskEntry task, final int gpu, final long decidedNs) {
        final long waitedNs = desired.enforcer(gpu).enforcedNs() - decidedNs;
        final long constantNs = promised == null || !preemptive || task.patienceNs > 0 ? 0
            : promised.waited(gpu, waitedNs);
        if (constantNs > 0) {
            counters.increment(Counter.CONSTANTS_BROKEN);
            journal.constantBroken(gpu, task, waitedNs, constantNs);
        }
    }

    private void finish(final TaskEntry task, final long ticket) {
        write(task, ticket);
        counters.increment(Counter.GRANTS_AFTER_DISABLE);
        recordWritten(task, ticket);
    }

    private void write(final TaskEntry task, final long ticket) {
        answered = true;
        task.grantPending = false;
        task.slot.state(Abi.SEGMENT_RUNNING);
        task.slot.grant(ticket, Abi.VERDICT_GRANTED);
    }

    private void recordWritten(final TaskEntry task, final long ticket) {
        final long givenNs = answered && !ofTimer ? clock.readNs() : clock.nowNs();
        answered = false;
        counters.increment(Counter.GRANTS);
        journal.granted(task, ticket, givenNs);
        scheduler.onGiven(task.id, ticket, givenNs);
    }

    private void recordEnforced(final TaskEntry task, final int gpu, final long ticket) {
        final Enforcement enforcer = desired.enforcer(gpu);
        if (enforcer.isIncomplete()) {
            counters.increment(Counter.GRANTS_UNENFORCED);
        } else if (preemptive && scheduler.policy().enforces()) {
            journal.enforced(task, gpu, ticket, enforcer.enforcedNs());
        }
    }

    /** In the order of their decisions, each task once. Grows when more wait than ever before. */
    private static final class Awaited {
        private static final int INITIAL = 16;

        private TaskEntry[] task = new TaskEntry[INITIAL];
        private long[] ticket = new long[INITIAL];
        private long[] version = new long[INITIAL];
        private long[] decidedNs = new long[INITIAL];
        private int count;

        void put(final TaskEntry entry, final long ofTicket, final long atNs, final long awaitedVersion) {
            remove(entry);
            if (count == task.length) {
                task = Arrays.copyOf(task, 2 * count);
                ticket = Arrays.copyOf(ticket, 2 * count);
                version = Arrays.copyOf(version, 2 * count);
                decidedNs = Arrays.copyOf(decidedNs, 2 * count);
            }
            task[count] = entry;
            ticket[count] = ofTicket;
            decidedNs[count] = atNs;
            version[count++] = awaitedVersion;
        }

        void remove(final TaskEntry entry) {
            for (int i = 0; i < count; i++) {
                if (task[i] == entry) {
                    removeAt(i);
                    return;
                }
            }
        }

        void removeAt(final int at) {
            final int after = --count - at;
            System.arraycopy(task, at + 1, task, at, after);
            System.arraycopy(ticket, at + 1, ticket, at, after);
            System.arraycopy(version, at + 1, version, at, after);
            System.arraycopy(decidedNs, at + 1, decidedNs, at, after);
            task[count] = null;
        }
    }
}
