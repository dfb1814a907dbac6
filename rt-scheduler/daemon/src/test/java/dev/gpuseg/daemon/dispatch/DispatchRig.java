/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.enforce.FakeEnforcement;
import dev.gpuseg.mechanisms.ContextRef;
import java.util.ArrayList;
import java.util.List;

/**
 * The dispatcher's parts around the real scheduler, with fakes of enforcers, sessions and journal. Tasks made by
 * {@link #task} have a process and a context of their own; numbers of task, context and client are the same.
 */
final class DispatchRig {
    static final int TASKS = 8;
    static final int CONTEXTS = 12;

    final FakeJournal events = new FakeJournal();
    final Counters counters = new Counters();
    final CycleClock clock = new CycleClock();
    final FakeEnforcement[] enforcers;
    final FakeEnforcement enforcer;
    final DesiredStates desired;
    final SegmentScheduler scheduler;
    final TaskTable tasks = new TaskTable(TASKS);
    final DispatcherJournal journal = new DispatcherJournal(events, counters, clock);
    final GrantGate grants;
    final Anticipation anticipation;
    final DecisionApplier decisions;
    final ProcessRegistry processes;
    final PolicyControl policy;
    final Turns turns;
    final List<String> shownPolicies = new ArrayList<>();

    DispatchRig(final Policy policy) {
        this(policy, true, 1);
    }

    DispatchRig(final Policy policy, final boolean preemptive, final int gpus) {
        this(policy, preemptive, gpus, false);
    }

    DispatchRig(final Policy policy, final boolean preemptive, final int gpus, final boolean slicesBoundWaits) {
        enforcers = new FakeEnforcement[gpus];
        for (int g = 0; g < gpus; g++) {
            enforcers[g] = new FakeEnforcement(CONTEXTS);
            enforcers[g].mechanism.slicesBoundWaits = slicesBoundWaits;
        }
        enforcer = enforcers[0];
        desired = new DesiredStates(enforcers);
        final Decisions decided = new Decisions(desired);
        final SchedulerConfig config = new SchedulerConfig(policy, gpus, TASKS, CONTEXTS, preemptive, true,
            Unmanaged.BEST_EFFORT);
        scheduler = new SegmentScheduler(config, decided);
        scheduler.countFromGrants();
        scheduler.chargeHints();
        grants = new GrantGate(scheduler, desired, journal, counters, clock, preemptive);
        anticipation = new Anticipation(config, scheduler, desired, tasks, counters, journal, clock);
        turns = new Turns(scheduler, desired, tasks, CONTEXTS, clock);
        decisions = new DecisionApplier(decided, desired, anticipation, turns, grants, tasks, journal, counters);
        processes = new ProcessRegistry(scheduler, desired, CONTEXTS, journal, clock, decisions::settle,
            counters);
        this.policy = new PolicyControl(scheduler, desired, processes, tasks, decisions, journal, clock,
            shownPolicies::add, anticipation);
        clock.set(1);
    }

    static TaskOpen request(final int clientId, final String name, final int priority) {
        return new TaskOpen(clientId, clientId, name, priority, priority, 0, true, 0, 0, 0);
    }

    /** Opens a task in a process of its own on GPU 0. */
    TaskEntry task(final int id, final int priority) {
        return task(id, request(id, "task" + id, priority));
    }

    TaskEntry task(final int id, final TaskOpen request) {
        final ContextRef context = new ContextRef(id, 0, 100 + id, 1, "process" + id);
        scheduler.addContext(id, 0, ContextKind.MANAGED);
        final ClientEntry client = new ClientEntry(new Client(id, 100 + id, 0, 0, 1, "process" + id, null, null, null),
            new ProcessEntry(100 + id, 1, "process" + id, new ContextRef[] {context}), null);
        final TaskEntry task = new TaskEntry(id, client, new FakeSlot(), id, request);
        tasks.add(task);
        client.tasks.add(task);
        scheduler.addTask(new TaskParameters(id, id, request.priority(), request.gpuPriority(), request.deadlineNs(),
            request.budgetNs(), request.optimistic(), request.overrun(), request.windowNs(), request.partition()));
        anticipation.open(task);
        decisions.settle();
        enforcer.enforce(clock.nowNs());
        forget(task);
        return task;
    }

    /** A task of the same process on another GPU, in a context that is there. */
    TaskEntry taskOf(final TaskEntry sibling, final int id, final int contextId, final int gpu) {
        final TaskEntry task = new TaskEntry(id, sibling.client, new FakeSlot(), contextId,
            new TaskOpen(1, sibling.clientId(), "task" + id, 10, 10, gpu, true, 0, 0, 0));
        tasks.add(task);
        scheduler.addTask(new TaskParameters(id, contextId, 10, 10, 0, 0, true));
        scheduler.addContext(contextId + 1, gpu, ContextKind.MANAGED);
        anticipation.open(task);
        return task;
    }

    /** A task whose segments may take so long, and what follows if they take longer. */
    TaskEntry task(final int id, final int priority, final long budgetNs, final OverrunAction overrun) {
        return task(id, new TaskOpen(id, id, "task" + id, priority, priority, 0, true, 0, 0, budgetNs, overrun, 0, 0,
            0, 0));
    }

    /** What was told so far does not count. */
    void forget(final TaskEntry... of) {
        events.events.clear();
        enforcer.calls.clear();
        for (final TaskEntry task : of) {
            told(task).clear();
        }
    }

    static List<String> told(final TaskEntry task) {
        return ((FakeSlot) task.slot).told;
    }

    /** A begin as the dispatcher takes it, up to the decisions. */
    void begin(final TaskEntry task, final long ticket, final boolean waits) {
        task.ticket = ticket;
        task.optimistic = !waits;
        turns.begins(task, anticipation.isReserved(task.gpu()), clock.nowNs());
        anticipation.begin(task);
        final int outcome = scheduler.begin(task.id, ticket, 0, 0, !waits, clock.nowNs(), clock.nowNs());
        if (outcome != Outcome.ACCEPTED) {
            throw new AssertionError(Outcome.name(outcome));
        }
        decisions.settle();
        anticipation.learn(task, clock.nowNs(), 0);
    }

    void end(final TaskEntry task, final long ticket) {
        grants.forget(task);
        scheduler.end(task.id, ticket, clock.nowNs());
        anticipation.end(task);
        turns.ends(task, clock.nowNs());
        decisions.settle();
    }

    /** Time passes; timers fire. */
    void at(final long nowNs) {
        clock.set(nowNs);
        while (scheduler.nextTimerNs() <= nowNs) {
            scheduler.onTimer(nowNs);
            decisions.settle();
        }
        if (turns.isDue(nowNs)) {
            decisions.settle();
        }
    }

    long count(final Counter counter) {
        return counters.get(counter);
    }
}
