/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.ipc.Abi;

/**
 * Carries out what the scheduler decided in one event, in two parts: first what clients and enforcers wait for, then
 * counters, states for tools and the journal. Dispatcher thread only, allocates nothing.
 */
final class DecisionApplier {
    private final Decisions decisions;
    private final DesiredStates desired;
    private final Anticipation anticipation;
    private final Turns turns;
    private final GrantGate grants;
    private final TaskTable tasks;
    private final DispatcherJournal journal;
    private final Counters counters;

    DecisionApplier(final Decisions decisions, final DesiredStates desired, final Anticipation anticipation,
        final Turns turns, final GrantGate grants, final TaskTable tasks, final DispatcherJournal journal,
        final Counters counters) {
        this.decisions = decisions;
        this.desired = desired;
        this.anticipation = anticipation;
        this.turns = turns;
        this.grants = grants;
        this.tasks = tasks;
        this.journal = journal;
        this.counters = counters;
    }

    /** Both parts, where nothing is to be written between them. */
    void settle() {
        answer();
        record();
    }

    /** First part: publishes the desired states, writes grant words and pre-grants. */
    void answer() {
        for (int g = 0; g < desired.gpus(); g++) {
            final boolean reservationChanged = anticipation.follow(g);
            final boolean later = turns.follow(g, anticipation.isReserved(g));
            desired.publish(g, reservationChanged, later);
            anticipation.published(g);
        }
        for (int i = 0; i < decisions.count(); i++) {
            final TaskEntry task = tasks.get(decisions.task(i));
            if (task == null) {
                continue;   // closed within the same event
            }
            switch (decisions.kind(i)) {
                case Decisions.GRANT:
                    grants.answerGrant(task, decisions.gpu(i), decisions.ticket(i));
                    break;
                case Decisions.PREGRANT:
                    task.slot.pregrant(decisions.argument(i) != 0);
                    break;
                default:
                    break;   // no client waits for these
            }
        }
    }

    /** Second part, after {@link #answer}. */
    void record() {
        for (int i = 0; i < decisions.count(); i++) {
            final TaskEntry task = tasks.get(decisions.task(i));
            if (task != null) {
                record(task, decisions.kind(i), decisions.gpu(i), decisions.ticket(i), decisions.argument(i));
            }
        }
        decisions.clear();
        anticipation.record();
    }

    private void record(final TaskEntry task, final int kind, final int gpu, final long ticket, final long argument) {
        switch (kind) {
            case Decisions.GRANT:
                grants.recordGrant(task, gpu, ticket);
                break;
            case Decisions.RESUME:
                counters.increment(Counter.RESUMES);
                task.slot.state(Abi.SEGMENT_RUNNING);
                journal.resumed(task, gpu, ticket);
                grants.recordRunning(task, gpu, ticket);
                break;
            case Decisions.PREEMPT:
                grants.recordPreempted(task, gpu);
                task.preemptions++;
                counters.increment(Counter.PREEMPTIONS);
                task.slot.countPreemption();
                task.slot.state(Abi.SEGMENT_PREEMPTED);
                journal.preempted(task, gpu, ticket, Math.max(0, argument));
                break;
            case Decisions.MISS:
                if (task.isRealTime()) {   // best effort has no deadline to miss; the event is for a replay
                    counters.increment(Counter.DEADLINE_MISSES);
                    task.slot.countMiss();
                }
                task.account.deadlinePassed(task.priority);
                journal.missed(task, ticket, argument);
                break;
            case Decisions.OVERRUN:
                task.overruns++;
                counters.increment(Counter.OVERRUNS);
                task.slot.countOverrun();
                journal.overran(task, ticket, argument);
                grants.recordOverrun(task, ticket);
                break;
            case Decisions.SHARE:
                if (argument != 0) {
                    counters.increment(Counter.SHARES_USED_UP);
                }
                journal.shareSpent(task, argument != 0);
                grants.recordShare(task, argument != 0);
                break;
            default:
                break;   // a pre-grant is no event
        }
    }
}
