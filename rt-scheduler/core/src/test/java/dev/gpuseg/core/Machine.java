/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/** A scheduler with a few words for writing scenarios: one GPU, task t in context t unless said otherwise. */
final class Machine {
    final Recorder recorder = new Recorder();
    final SegmentScheduler scheduler;
    private long nowNs;

    Machine(final Policy policy, final boolean preemptive) {
        this(policy, preemptive, false);
    }

    Machine(final Policy policy, final boolean preemptive, final boolean optimistic) {
        scheduler = new SegmentScheduler(
            new SchedulerConfig(policy, 2, 20, 20, preemptive, optimistic, Unmanaged.BEST_EFFORT), recorder);
    }

    /** A task in a context of its own. */
    Machine task(final int t, final int priority) {
        context(t, ContextKind.MANAGED);
        return task(t, t, priority);
    }

    Machine context(final int c, final ContextKind kind) {
        scheduler.addContext(c, 0, kind);
        return this;
    }

    Machine task(final int t, final int c, final int priority) {
        scheduler.addTask(new TaskParameters(t, c, priority, 0, 0, 0, true));
        return this;
    }

    Machine begin(final int... tasks) {
        for (final int t : tasks) {
            begin(t, 0, false);
        }
        return this;
    }

    Machine begin(final int t, final long deadlineNs, final boolean optimistic) {
        nowNs += 10;
        expect(scheduler.begin(t, nowNs, 0, deadlineNs, optimistic, nowNs, nowNs));
        return this;
    }

    Machine end(final int... tasks) {
        for (final int t : tasks) {
            nowNs += 10;
            expect(scheduler.end(t, scheduler.ticket(t), nowNs));
        }
        return this;
    }

    long now() {
        return nowNs;
    }

    String state(final int t) {
        return SegmentState.name(scheduler.state(t));
    }

    /** States of several tasks, such as {@code "running preempted"}. */
    String states(final int... tasks) {
        final StringBuilder text = new StringBuilder();
        for (final int t : tasks) {
            text.append(text.isEmpty() ? "" : " ").append(state(t));
        }
        return text.toString();
    }

    private static void expect(final int outcome) {
        if (outcome != Outcome.ACCEPTED) {
            throw new AssertionError(Outcome.name(outcome));
        }
    }
}
