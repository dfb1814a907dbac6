/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.EventWriter;
import dev.gpuseg.mechanisms.ContextRef;
import java.util.Locale;

/**
 * Writes down what the dispatcher takes, decides and does: one method for each kind of event, which knows where its
 * arguments go ({@code enum gpuseg_event_kind} in gpuseg_abi.h). An event has the time of the duty cycle, unless
 * something later is known to have led to it. Every event that finds no room is counted. Dispatcher thread only;
 * methods without text allocate nothing.
 */
public final class DispatcherJournal {
    /** Of {@link EventKind#BOUND}: what took longer than its constant. */
    private static final long OF_CALL = 1;
    private static final long OF_WAIT = 2;

    private final EventWriter events;
    private final Counters counters;
    private final CycleClock clock;
    private long written;

    DispatcherJournal(final EventWriter events, final Counters counters, final CycleClock clock) {
        this.events = events;
        this.counters = counters;
        this.clock = clock;
    }

    /** How many events without text were written or lost so far. */
    long written() {
        return written;
    }

    // ---- the daemon -----------------------------------------------------------------------------------------------

    void started(final String configuration) {
        text(EventKind.START, 0, 0, 0, 0, 0, 0, configuration);
    }

    void stopped() {
        event(EventKind.STOP, 0, 0, 0, 0, 0, 0, 0);
    }

    /** The scheduler looked at the clock and decided nothing that would tell of it; a replay has to know. */
    void timer() {
        event(EventKind.TIMER, 0, 0, 0, 0, 0, 0, 0);
    }

    void stalled(final long tookNs) {
        event(EventKind.STALL, 0, 0, 0, 0, tookNs, 0, 0);
    }

    /** A garbage collection stopped the JVM; both in ns of CLOCK_MONOTONIC. */
    void collected(final long beganNs, final long durationNs) {
        event(EventKind.GC, 0, 0, 0, 0, beganNs, durationNs, 0);
    }

    /** Clocks that were read together. */
    public void clocks(final long monotonicNs, final long realtimeNs, final String others) {
        text(EventKind.CLOCK, 0, 0, 0, 0, monotonicNs, realtimeNs, others);
    }

    // ---- clients, processes, tasks --------------------------------------------------------------------------------

    void clientOpened(final ClientEntry entry) {
        text(EventKind.CLIENT_OPEN, 0, 0, entry.process.contexts[0], entry.client.clientId(), entry.client.pid(),
            entry.client.uid(), entry.client.name());
    }

    void clientClosed(final ClientEntry entry) {
        event(EventKind.CLIENT_CLOSE, 0, 0, entry.process.contexts[0], entry.client.clientId(), entry.process.pid, 0,
            0);
    }

    void clientPoisoned(final ClientEntry entry, final int code, final String why) {
        text(EventKind.CLIENT_POISON, 0, 0, entry.process.contexts[0], entry.client.clientId(), code, 0, why);
    }

    void contextOpened(final ContextRef context, final ContextKind kind, final String processName) {
        text(EventKind.CONTEXT_OPEN, context.gpu(), 0, context.contextId(), 0, context.pid(), kind.ordinal(),
            processName);
    }

    void contextKind(final ContextRef context, final ContextKind kind) {
        event(EventKind.CONTEXT_KIND, context.gpu(), 0, context.contextId(), 0, context.pid(), kind.ordinal(), 0);
    }

    void contextClosed(final ContextRef context) {
        event(EventKind.CONTEXT_CLOSE, context.gpu(), 0, context.contextId(), 0, context.pid(), 0, 0);
    }

    void taskOpened(final TaskEntry task, final String attributes) {
        text(EventKind.TASK_OPEN, task.gpu(), task.id, task.contextId, task.clientId(), task.request.priority(),
            task.request.deadlineNs(), attributes);
    }

    void taskClosed(final TaskEntry task) {
        event(EventKind.TASK_CLOSE, task, 0, 0, 0, 0, 0);
    }

    // ---- records --------------------------------------------------------------------------------------------------

    void release(final TaskEntry task, final long releaseNs, final long stampNs, final long sample) {
        event(EventKind.RELEASE, task, 0, 0, releaseNs, stampNs, sample);
    }

    void hint(final TaskEntry task, final long expectedNs) {
        event(EventKind.HINT, task, 0, 0, expectedNs, 0, 0);
    }

    void begin(final TaskEntry task, final int flags, final long ticket, final long clientNs, final long releaseNs,
        final long deadlineNs) {
        event(EventKind.BEGIN, task, flags, ticket, clientNs, releaseNs, deadlineNs);
    }

    void end(final TaskEntry task, final int flags, final long ticket, final long clientNs, final long deviceNs) {
        event(EventKind.END, task, flags, ticket, clientNs, deviceNs, 0);
    }

    void cancel(final TaskEntry task, final int flags, final long ticket, final long clientNs) {
        event(EventKind.CANCEL, task, flags, ticket, clientNs, 0, 0);
    }

    void jobEnd(final TaskEntry task, final long clientNs, final long responseNs) {
        event(EventKind.JOB_END, task, 0, 0, clientNs, responseNs, 0);
    }

    void jobCancel(final TaskEntry task, final long clientNs) {
        event(EventKind.JOB_CANCEL, task, 0, 0, clientNs, 0, 0);
    }

    void boundBroken(final TaskEntry task, final long responseNs, final long boundNs) {
        event(EventKind.BOUND, task, 0, 0, responseNs, boundNs, 0);
    }

    /** A driver call (task null) or a wait of a begin took longer than its constant. */
    void constantBroken(final int gpu, final TaskEntry task, final long tookNs, final long constantNs) {
        write(EventKind.BOUND, clock.nowNs(), gpu, 0, task == null ? 0 : task.id, 0, task == null ? 0 : task.contextId,
            task == null ? 0 : task.clientId(), tookNs, constantNs, task == null ? OF_CALL : OF_WAIT);
    }

    // ---- decisions ------------------------------------------------------------------------------------------------

    /** Chosen to run; the grant follows when the others are disabled. */
    void decided(final TaskEntry task, final int gpu, final long ticket) {
        event(EventKind.DECIDED, gpu, task, ticket, 0);
    }

    /** The grant was given at that time. */
    void granted(final TaskEntry task, final long ticket, final long givenNs) {
        written++;
        write(EventKind.GRANT, givenNs, task.gpu(), task.optimistic ? Abi.FLAG_OPTIMISTIC : 0, task.id, ticket,
            task.contextId, task.clientId(), 0, 0, 0);
    }

    void resumed(final TaskEntry task, final int gpu, final long ticket) {
        event(EventKind.RESUME, gpu, task, ticket, 0);
    }

    void preempted(final TaskEntry task, final int gpu, final long ticket, final long byTaskId) {
        event(EventKind.PREEMPT, gpu, task, ticket, byTaskId);
    }

    void missed(final TaskEntry task, final long ticket, final long deadlineNs) {
        event(EventKind.MISS, task, 0, ticket, deadlineNs, 0, 0);
    }

    void overran(final TaskEntry task, final long ticket, final long budgetNs) {
        event(EventKind.OVERRUN, task, 0, ticket, budgetNs, 0, 0);
    }

    /** The share of its user is used up, or whole again. */
    void shareSpent(final TaskEntry task, final boolean spent) {
        event(EventKind.SHARE, task, 0, 0, spent ? 1 : 0, task.shareAccount, 0);
    }

    void forcedEnd(final TaskEntry task, final long ticket) {
        event(EventKind.FORCED_END, task, 0, ticket, 0, 0, 0);
    }

    /** Everything that had to be off for this segment was off at that time. */
    void enforced(final TaskEntry task, final int gpu, final long ticket, final long enforcedNs) {
        write(EventKind.ENFORCED, Math.max(clock.nowNs(), enforcedNs), gpu, 0, task.id, ticket, task.contextId,
            task.clientId(), 0, 0, 0);
    }

    // ---- enforcers ------------------------------------------------------------------------------------------------

    /** A context went off or on; the core is told at the time of the cycle. */
    void applied(final int gpu, final int contextId, final boolean off, final long beganNs, final long doneNs) {
        final long nowNs = clock.nowNs();
        write(off ? EventKind.DISABLE : EventKind.ENABLE, Math.max(nowNs, doneNs), gpu, 0, 0, 0, contextId, 0, beganNs,
            doneNs - beganNs, nowNs);
    }

    /** The watchdog enabled contexts while the daemon was silent. */
    void watchdogReleased(final int gpu, final long releases, final long firstNs) {
        event(EventKind.WATCHDOG, gpu, 0, 0, 0, releases, firstNs, 0);
    }

    void mechanismFailed(final int gpu, final String how) {
        text(EventKind.MECHANISM_ERROR, gpu, 0, 0, 0, 0, 0, how);
    }

    /** An error of the dispatcher's own. */
    void failed(final Throwable error) {
        text(EventKind.MECHANISM_ERROR, 0, 0, 0, 0, 0, 0, "dispatcher: " + error);
    }

    // ---- policy and parameters: a replay reads the numbers, a human the text --------------------------------------

    void policy(final String policyText) {
        text(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "policy " + policyText);
    }

    void settings(final String settingsText) {
        text(EventKind.POLICY, 0, 0, 0, 0, 0, 0, "settings " + settingsText);
    }

    void sharing(final Sharing sharing, final long quantumNs) {
        text(EventKind.POLICY, 0, 0, 0, 0, sharing.ordinal(), quantumNs, "sharing "
            + sharing.name().toLowerCase(Locale.ROOT) + " quantum " + quantumNs + " ns");
    }

    /** Contexts of idle higher tasks stay enabled; earlier daemons could do otherwise. */
    void keepsReady() {
        text(EventKind.POLICY, 0, 0, 0, 0, 1, 0, "keep ready true");
    }

    void overrunAction(final TaskEntry task, final OverrunAction action) {
        text(EventKind.POLICY, task.gpu(), 0, 0, 0, task.id, 0, "overrun of task " + task.id + " is "
            + action.label());
    }

    void weight(final int group, final int weight) {
        text(EventKind.POLICY, 0, 0, 0, 0, group, weight, "group " + group + " weight " + weight);
    }

    void share(final int account, final int percent) {
        text(EventKind.POLICY, 0, 0, 0, 0, account, percent, "share of account " + account + " is " + percent + "%");
    }

    /** A quota of 0 is no cap. */
    void cap(final int group, final long quotaNs, final long periodNs) {
        text(EventKind.POLICY, 0, 0, 0, 0, group, quotaNs, quotaNs == 0 ? "group " + group + " no cap"
            : "group " + group + " cap " + quotaNs + " ns of " + periodNs + " ns");
    }

    void contextGroup(final int contextId, final int group) {
        text(EventKind.POLICY, 0, 0, contextId, 0, group, 0, "context " + contextId + " group " + group);
    }

    /** What holds for tasks without a wish of their own, and the share of the time that anticipation may use. */
    void anticipate(final Anticipate mode, final int budgetPpm) {
        text(EventKind.POLICY, 0, 0, 0, 0, mode.ordinal(), budgetPpm, "anticipate " + mode.label() + ", budget "
            + budgetPpm + " ppm");
    }

    void anticipateTask(final TaskEntry task, final Anticipate wish) {
        text(EventKind.POLICY, task.gpu(), 0, 0, 0, task.id, wish.ordinal(), "anticipation of task " + task.id + " is "
            + wish.label());
    }

    void anticipationCost(final int gpu, final long disableNs, final long perContextNs) {
        text(EventKind.POLICY, gpu, 0, 0, 0, disableNs, perContextNs, "disabling on GPU " + gpu + " takes " + disableNs
            + " ns and " + perContextNs + " ns for each further context");
    }

    /** What was decided or learned about expected begins; arguments as {@code enum gpuseg_anticipation} says. */
    void anticipation(final int what, final int gpu, final TaskEntry task, final long arg0, final long arg1,
        final long arg2) {
        // it tells a replay nothing of when the scheduler looked at the clock, so it does not count as written
        write(EventKind.ANTICIPATE, clock.nowNs(), gpu, what, task == null ? 0 : task.id, 0,
            task == null ? 0 : task.contextId, task == null ? 0 : task.clientId(), arg0, arg1, arg2);
    }

    /** The priorities of a task that count from now on. */
    void priority(final TaskEntry task, final int priority, final int gpuPriority) {
        event(EventKind.PRIORITY, task, 0, task.ticket, priority, gpuPriority, 0);
    }

    /** The same as text, for the user who set them. */
    void prioritySet(final TaskEntry task, final int priority, final int gpuPriority, final String what) {
        text(EventKind.POLICY, task.gpu(), task.id, task.contextId, task.clientId(), priority, gpuPriority, what);
    }

    // ---------------------------------------------------------------------------------------------------------------

    private void event(final EventKind kind, final int gpu, final TaskEntry task, final long ticket, final long arg0) {
        event(kind, gpu, 0, task.id, ticket, task.contextId, task.clientId(), arg0, 0, 0);
    }

    private void event(final EventKind kind, final TaskEntry task, final int flags, final long ticket, final long arg0,
        final long arg1, final long arg2) {
        event(kind, task.gpu(), flags, task.id, ticket, task.contextId, task.clientId(), arg0, arg1, arg2);
    }

    private void event(final EventKind kind, final int gpu, final int taskId, final int contextId, final int clientId,
        final long arg0, final long arg1, final long arg2) {
        event(kind, gpu, 0, taskId, 0, contextId, clientId, arg0, arg1, arg2);
    }

    private void event(final EventKind kind, final int gpu, final int flags, final int taskId, final long ticket,
        final int contextId, final int clientId, final long arg0, final long arg1, final long arg2) {
        written++;
        write(kind, clock.nowNs(), gpu, flags, taskId, ticket, contextId, clientId, arg0, arg1, arg2);
    }

    private void write(final EventKind kind, final long timeNs, final int gpu, final int flags, final int taskId,
        final long ticket, final int contextId, final int clientId, final long arg0, final long arg1,
        final long arg2) {
        if (!events.write(kind, timeNs, gpu, flags, taskId, ticket, contextId, clientId, arg0, arg1, arg2)) {
            counters.increment(Counter.JOURNAL_DROPS);
        }
    }

    private void text(final EventKind kind, final int gpu, final int taskId, final int contextId, final int clientId,
        final long arg0, final long arg1, final String text) {
        if (!events.writeText(kind, clock.nowNs(), gpu, taskId, contextId, clientId, arg0, arg1, text)) {
            counters.increment(Counter.JOURNAL_DROPS);
        }
    }
}
