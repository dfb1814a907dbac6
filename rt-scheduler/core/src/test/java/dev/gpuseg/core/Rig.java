/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Drives a scheduler and the reference with the same events. */
final class Rig {
    final Recorder recorder = new Recorder();
    final SegmentScheduler scheduler;
    final Reference reference;
    /** Calls of the last event. */
    List<Call> calls = List.of();
    /** What the last event returned, and should have. */
    int outcome;
    int expectedOutcome;
    /** The last event was a begin that was taken and did not wait. */
    boolean begunAhead;
    /** Policy or a priority of a begun segment changed since the GPUs were last all idle. */
    boolean reranked;

    private final List<Call> log = new ArrayList<>();
    private final boolean honest;
    private final boolean wide;

    Rig(final History h) {
        this(h, false);
    }

    /**
     * Sets up four contexts with tasks, so that histories need not begin with an empty machine.
     *
     * @param honest true if only pre-granted begins may go ahead without waiting
     */
    Rig(final History h, final boolean honest) {
        this.honest = honest;
        wide = h.wide();
        scheduler = new SegmentScheduler(h.config(), recorder);
        scheduler.setKeepReady(h.keepReady(), 0);
        reference = new Reference(h);
        addContext(0, 0, ContextKind.MANAGED);
        addContext(1, 0, ContextKind.MANAGED);
        addContext(2, 0, ContextKind.UNMANAGED);
        addContext(3, 1, ContextKind.MANAGED);
        addTask(new TaskParameters(0, 0, 10, 0, 90, 25, true));
        addTask(new TaskParameters(1, 0, 30, 0, 0, 0, true));
        addTask(new TaskParameters(2, 1, 20, 0, 60, 0, true).inPartition(wide ? 1 : 0));
        addTask(new TaskParameters(3, 3, 20, 0, 60, 10, true).onOverrun(
            wide ? OverrunAction.SKIP_NEXT : OverrunAction.NOTIFY));
        recorder.take();
    }

    /** The only open task of a context, null if there is none or another one. */
    Reference.Task onlyTask(final int context) {
        final List<Reference.Task> tasks = reference.tasks.values().stream().filter(t -> t.contextId() == context)
            .toList();
        return tasks.size() == 1 ? tasks.get(0) : null;
    }

    /** Whether a context may be on without a segment: ready ones are wanted, and its only task need not wait. */
    boolean mayBeReady(final int context) {
        return reference.keepReady && onlyTask(context) != null && reference.tasks.keySet().stream()
            .allMatch(t -> reference.tasks.get(t).contextId() != context
                || scheduler.state(t) == SegmentState.IDLE && scheduler.isPregranted(t));
    }

    List<Call> log() {
        return log;
    }

    /** Applies one action; afterwards {@link #calls} holds what the scheduler said. */
    void apply(final Action a) {
        recorder.take();
        reference.phases.clear();
        outcome = 0;
        expectedOutcome = 0;
        begunAhead = false;
        final long now = reference.nowNs + a.stepNs();
        switch (a.op()) {
            case BEGIN -> begin(a, now);
            case END, CANCEL -> end(a, now);
            case TIMER -> {
                reference.time(now);
                scheduler.onTimer(now);
            }
            case ADD_TASK -> addTask(a);
            case REMOVE_TASK -> {
                final int t = a.pick() % (History.TASKS + 1);
                reference.time(now);
                reference.removeTask(t);
                scheduler.removeTask(t, now);
            }
            case ADD_CONTEXT -> {
                final int c = a.pick() % (History.CONTEXTS + 1);
                if (!reference.contexts.containsKey(c)) {
                    addContext(c, a.spice() % History.GPUS, kind(a));
                }
            }
            case REMOVE_CONTEXT -> {
                final int c = a.pick() % (History.CONTEXTS + 1);
                reference.time(now);
                reference.removeContext(c);
                scheduler.removeContext(c, now);
            }
            case SET_KIND -> setKind(a);
            case SET_PRIORITY -> {
                final int t = a.pick() % (History.TASKS + 1);
                if (wide && a.spice() % 3 == 0) {
                    final OverrunAction action = OverrunAction.values()[a.length() % 4];
                    reference.time(now);
                    reranked = true;
                    reference.setOverrunAction(t, action);
                    scheduler.setOverrunAction(t, action, now);
                    break;
                }
                reference.time(now);
                reranked = true;
                reference.setPriority(t, a.priority());
                scheduler.setPriority(t, a.priority(), 0, now);
            }
            case SET_POLICY -> {
                final List<String> names = wide ? History.WIDE_POLICIES : History.NARROW_POLICIES;
                final String name = names.get(a.spice() % names.size());
                reference.time(now);
                reranked = true;
                reference.setPolicy(name);
                scheduler.setPolicy(History.policyNamed(name), now);
            }
            default -> throw new AssertionError(a.op());
        }
        calls = recorder.take();
        log.addAll(calls);
        reranked &= !reference.begun.isEmpty();
    }

    private void begin(final Action a, final long now) {
        final int t = a.pick() % (History.TASKS + 1);
        final long last = reference.lastTicket.getOrDefault(t, 0L);
        final long ticket = a.spice() % 23 == 0 ? last : a.spice() % 29 == 0 ? last - 1 : last + 1 + a.spice() % 2;
        final boolean pregranted = scheduler.isPregranted(t);
        final boolean didNotWait = pregranted && a.spice() % 5 != 0 || !honest && a.spice() % 7 == 0;
        final long beginNs = Math.max(0, now - a.spice() % 4);
        final long deadlineNs = a.spice() % 3 == 0 ? now + a.length() : 0;
        reference.time(now);
        expectedOutcome = reference.begin(t, ticket, deadlineNs, didNotWait, beginNs);
        outcome = scheduler.begin(t, ticket, 0, deadlineNs, didNotWait, beginNs, now);
        begunAhead = didNotWait && outcome == Outcome.ACCEPTED;
    }

    private void end(final Action a, final long now) {
        int t = a.pick() % (History.TASKS + 1);
        if (!reference.begun.isEmpty() && a.spice() % 17 != 0) {
            t = reference.begun.get(a.pick() % reference.begun.size()).task;
        }
        final long last = reference.lastTicket.getOrDefault(t, 0L);
        final long ticket = a.spice() % 19 == 0 ? last - 1 : a.spice() % 23 == 0 ? last + 1 : last;
        reference.time(now);
        expectedOutcome = reference.end(t, ticket);
        outcome = a.op() == Action.Op.END ? scheduler.end(t, ticket, now) : scheduler.cancel(t, ticket, now);
    }

    private void addTask(final Action a) {
        final int t = a.pick() % (History.TASKS + 1);
        final List<Integer> hosts = reference.contexts.entrySet().stream()
            .filter(e -> e.getValue().kind() != ContextKind.UNMANAGED).map(Map.Entry::getKey).toList();
        if (reference.tasks.containsKey(t) || hosts.isEmpty()) {
            return;
        }
        // Two hosts get most of the tasks, so that contexts with several tasks meet each other.
        final int host = hosts.get(a.spice() % (a.length() % 4 == 1 ? hosts.size() : Math.min(2, hosts.size())));
        final TaskParameters plain = new TaskParameters(t, host, a.priority(), 0,
            a.length() % 4 == 0 ? 0 : a.length(), a.length() % 3 == 0 ? 0 : a.length() % 30 + 1, a.spice() % 6 != 0);
        addTask(wide ? plain.onOverrun(OverrunAction.values()[a.spice() % 4])
            .withWindow(a.spice() % 3 == 0 ? a.length() % 50 + 1 : 0).inPartition(host % 3) : plain);
    }

    private void setKind(final Action a) {
        final List<Integer> known = List.copyOf(reference.contexts.keySet());
        if (known.isEmpty()) {
            return;
        }
        final int c = known.get(a.pick() % known.size());
        final boolean hasTasks = reference.tasks.values().stream().anyMatch(t -> t.contextId() == c);
        final ContextKind kind = kind(a);
        if (!hasTasks || kind != ContextKind.UNMANAGED) {
            reference.setKind(c, kind);
            scheduler.setContextKind(c, kind);
        }
    }

    private static ContextKind kind(final Action a) {
        return a.spice() % 5 == 0 ? ContextKind.PROTECTED
            : a.spice() % 5 == 1 ? ContextKind.UNMANAGED : ContextKind.MANAGED;
    }

    private void addContext(final int c, final int gpu, final ContextKind kind) {
        reference.addContext(c, gpu, kind);
        scheduler.addContext(c, gpu, kind);
    }

    private void addTask(final TaskParameters p) {
        reference.addTask(p);
        scheduler.addTask(p);
    }
}
