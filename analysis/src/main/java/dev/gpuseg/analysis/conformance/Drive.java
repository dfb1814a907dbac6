/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.Policy;
import dev.gpuseg.core.Priority;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.core.SegmentView;
import dev.gpuseg.core.TaskParameters;
import dev.gpuseg.core.Unmanaged;
import java.util.ArrayList;
import java.util.List;

/**
 * Drives the scheduler with a policy through one scenario and compares, after every event, what it says and answers
 * with what the policy's own answers about the begun segments imply. The expectation is computed anew each time, with
 * another algorithm than the scheduler's.
 */
final class Drive implements DecisionSink {
    private static final int TASKS = Scenario.TASKS;
    private static final int UNMANAGED = TASKS + 1;
    private static final int PROTECTED = TASKS + 2;

    private final Policy policy;
    private final Scenario scenario;
    private final Findings findings;
    private final SegmentScheduler scheduler;
    private final TaskParameters[] tasks;
    private final List<String> log = new ArrayList<>();

    private final int[] priority = new int[TASKS + 1];
    private final long[] ticket = new long[TASKS + 1];
    private final long[] beginNs = new long[TASKS + 1];
    /** The begun segment of each task; null while there is none. */
    private final SegmentView[] begun = new SegmentView[TASKS + 1];
    /** As the sink was told. */
    private final int[] told = new int[TASKS + 1];
    private final boolean[] preemptedNow = new boolean[TASKS + 1];
    private long nowNs = 1;

    Drive(final Policy policy, final Scenario scenario, final Findings findings) {
        this.policy = policy;
        this.scenario = scenario;
        this.findings = findings;
        tasks = scenario.tasks();
        scheduler = new SegmentScheduler(new SchedulerConfig(policy, 1, TASKS, PROTECTED, scenario.preemptive(),
            scenario.optimistic(), Unmanaged.BEST_EFFORT), this);
        scheduler.setKeepReady(scenario.keepReady(), 0);
        for (int t = 1; t <= TASKS; t++) {
            open(t);
        }
        scheduler.addContext(UNMANAGED, 0, ContextKind.UNMANAGED);
        scheduler.addContext(PROTECTED, 0, ContextKind.PROTECTED);
    }

    private void open(final int t) {
        scheduler.addContext(t, 0, ContextKind.MANAGED);
        scheduler.addTask(tasks[t]);
        priority[t] = tasks[t].gpuPriority();
        ticket[t] = 0;
        forget(t);
    }

    private void forget(final int t) {
        begun[t] = null;
        told[t] = SegmentState.IDLE;
    }

    /** Everything that was decided, in order. */
    List<String> run() {
        for (final Scenario.Event e : scenario.events()) {
            nowNs += e.stepNs();
            java.util.Arrays.fill(preemptedNow, false);
            scheduler.onTimer(nowNs);
            apply(e);
            check();
        }
        drain();
        return log;
    }

    private void apply(final Scenario.Event e) {
        final int t = e.task();
        switch (e.kind()) {
            case BEGIN -> begin(t, e.deadlineNs());
            case END -> {
                if (begun[t] != null) {
                    end(t);
                }
            }
            case PRIORITY -> {
                // behind a gate a grant cannot be taken back: there a begun segment keeps its rank
                if (scenario.preemptive() || begun[t] == null) {
                    priority[t] = e.priority();
                    if (begun[t] != null) {
                        begun[t] = view(t, begun[t].deadlineNs());
                    }
                    scheduler.setPriority(t, e.priority(), 0, nowNs);
                }
            }
            case DEATH -> {
                final int[] before = states(t);
                final boolean ran = told[t] == SegmentState.RUNNING;
                final boolean wasBegun = begun[t] != null;
                forget(t);
                scheduler.removeContext(t, nowNs);
                localEnd(t, before, wasBegun && !ran);
                open(t);
            }
            default -> {
                // its time has come already
            }
        }
    }

    private SegmentView view(final int t, final long deadlineNs) {
        return SegmentView.of(t, priority[t], tasks[t].partition(), beginNs[t], deadlineNs, beginNs[t],
            tasks[t].budgetNs());
    }

    private void begin(final int t, final long relativeNs) {
        if (begun[t] != null) {
            return;
        }
        final boolean ahead = scheduler.isPregranted(t);
        beginNs[t] = nowNs;
        begun[t] = view(t, relativeNs == 0 ? Long.MAX_VALUE : nowNs + relativeNs);
        told[t] = SegmentState.WAITING;
        final int outcome = scheduler.begin(t, ++ticket[t], 0, relativeNs == 0 ? 0 : nowNs + relativeNs, ahead, nowNs,
            nowNs);
        if (outcome != Outcome.ACCEPTED) {
            throw new IllegalStateException("begin of task " + t + ": " + Outcome.name(outcome));
        }
        findings.require(Law.PREGRANT_SOUND, !ahead || told[t] == SegmentState.RUNNING && !preemptedNow[t],
            () -> "task " + t + " was pre-granted, but is preempted as soon as it begins");
    }

    private void end(final int t) {
        final int[] before = states(t);
        final boolean ran = told[t] == SegmentState.RUNNING;
        forget(t);
        final int outcome = scheduler.end(t, ticket[t], nowNs);
        if (outcome != Outcome.ACCEPTED) {
            throw new IllegalStateException("end of task " + t + ": " + Outcome.name(outcome));
        }
        localEnd(t, before, !ran);
    }

    private int[] states(final int without) {
        final int[] states = told.clone();
        states[without] = SegmentState.IDLE;
        return states;
    }

    private void localEnd(final int t, final int[] before, final boolean applies) {
        // behind a gate, a real-time segment that waits keeps best effort from being granted
        findings.require(Law.LOCAL_END, !applies || !scenario.preemptive() || java.util.Arrays.equals(before,
            states(t)), () -> "task " + t + " did not run, but its end changes what others do");
    }

    // ---- what must hold after every event ----

    private void check() {
        for (int t = 1; t <= TASKS; t++) {
            final int task = t;
            final int state = scheduler.state(t);
            findings.require(Law.ONE_STATE, state == told[t], () -> "task " + task + " is "
                + SegmentState.name(state) + ", but the sink was told " + SegmentState.name(told[task]));
        }
        final SegmentView leader = leader();
        if (leader == null) {
            return;
        }
        findings.require(Law.WORK_CONSERVING, anyRunning(), () -> "task " + leader.taskId()
            + " could run, but nothing does");
        if (scenario.preemptive()) {
            checkOrder(leader);
            checkContexts(leader);
        } else if (policy.enforces()) {
            checkGate();
        }
    }

    private boolean anyRunning() {
        for (final int state : told) {
            if (state == SegmentState.RUNNING) {
                return true;
            }
        }
        return false;
    }

    private boolean isOpen(final SegmentView v, final boolean lent) {
        return !policy.enforces() || !policy.isTimed() || lent || policy.isOpen(v.partition(), nowNs);
    }

    /** Idle windows are lent, and no segment of an open partition is begun. */
    private boolean isLent() {
        if (!policy.isTimed() || !policy.lendsIdle(nowNs)) {
            return false;
        }
        for (final SegmentView v : begun) {
            if (v != null && policy.isOpen(v.partition(), nowNs)) {
                return false;
            }
        }
        return true;
    }

    private boolean isBefore(final SegmentView a, final SegmentView b) {
        final int order = policy.compare(a, b);
        return order != 0 ? order < 0 : a.beginNs() != b.beginNs() ? a.beginNs() < b.beginNs()
            : a.taskId() < b.taskId();
    }

    /** That before which no other one comes; null if no segment of an open partition is begun. */
    private SegmentView leader() {
        final boolean lent = isLent();
        SegmentView first = null;
        for (final SegmentView v : begun) {
            if (v != null && isOpen(v, lent) && (first == null || isBefore(v, first))) {
                first = v;
            }
        }
        return first;
    }

    private void checkOrder(final SegmentView leader) {
        final boolean lent = isLent();
        for (int t = 1; t <= TASKS; t++) {
            final SegmentView v = begun[t];
            final boolean runs = told[t] == SegmentState.RUNNING;
            final boolean should = v != null && isOpen(v, lent)
                && (v == leader || policy.mayRunBeside(leader, v));
            findings.require(Law.POLICY_ORDER, runs == should, () -> "task " + v.taskId()
                + (runs ? " runs" : " does not run") + ", task " + leader.taskId() + " is first in policy order, and "
                + (should ? "the two may run together" : "the two may not run together"));
            findings.require(Law.EXCLUSIVE, !policy.enforces() || !leader.isRealTime() || !runs || v.isRealTime(),
                () -> "best-effort task " + v.taskId() + " runs beside real-time task " + leader.taskId());
        }
    }

    private void checkContexts(final SegmentView leader) {
        final boolean alone = policy.enforces() && leader.isRealTime();
        for (int c = 1; c <= UNMANAGED; c++) {
            final int context = c;
            final boolean enabled = scheduler.contextDesired(c);
            final boolean runs = c <= TASKS && told[c] == SegmentState.RUNNING;
            findings.require(Law.WORK_CONSERVING, !runs || enabled, () -> "task " + context
                + " runs, but its context is disabled");
            findings.require(Law.EXCLUSIVE, !alone || runs || !enabled || isReady(context, leader),
                () -> (context == UNMANAGED ? "an unmanaged context" : "the context of task " + context)
                    + " is enabled while real-time task " + leader.taskId() + " leads");
        }
        findings.require(Law.EXCLUSIVE, scheduler.contextDesired(PROTECTED), () -> "a protected context is disabled");
    }

    private boolean isReady(final int c, final SegmentView leader) {
        return c <= TASKS && scenario.keepReady() && begun[c] == null
            && Priority.isHigherThan(priority[c], policy.pregrantCeiling(leader));
    }

    /** What runs behind a gate is either real-time or best effort. */
    private void checkGate() {
        boolean realTime = false;
        boolean bestEffort = false;
        for (int t = 1; t <= TASKS; t++) {
            if (told[t] == SegmentState.RUNNING) {
                realTime |= begun[t].isRealTime();
                bestEffort |= !begun[t].isRealTime();
            }
        }
        findings.require(Law.EXCLUSIVE, !(realTime && bestEffort),
            () -> "real-time and best-effort segments passed the gate together");
    }

    /** Whatever happened: when what runs ends, one after the other, everything that waits gets its turn. */
    private void drain() {
        for (int left = TASKS; left > 0; left--) {
            int runs = 0;
            boolean waits = false;
            for (int t = 1; t <= TASKS; t++) {
                runs = told[t] == SegmentState.RUNNING ? t : runs;
                waits |= begun[t] != null;
            }
            if (runs == 0) {
                findings.require(Law.WORK_CONSERVING, !waits || policy.isTimed(),
                    () -> "all that ran has ended, but something begun never runs");
                return;
            }
            end(runs);
            check();
        }
    }

    // ---- what the scheduler says ----

    private void tell(final String what, final int task, final boolean legal, final int state) {
        log.add(nowNs + " ns: " + what + " task " + task);
        findings.require(Law.ONE_STATE, legal, () -> what + " of task " + task + ", which was "
            + SegmentState.name(told[task]));
        told[task] = state;
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        log.add(nowNs + " ns: context " + contextId + (enabled ? " enabled" : " disabled"));
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long ofTicket, final int byTaskId) {
        preemptedNow[taskId] = true;
        tell("preempt", taskId, told[taskId] == SegmentState.RUNNING && scenario.preemptive(), SegmentState.PREEMPTED);
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long ofTicket) {
        tell("resume", taskId, told[taskId] == SegmentState.PREEMPTED, SegmentState.RUNNING);
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long ofTicket) {
        tell("grant", taskId, told[taskId] == SegmentState.WAITING, SegmentState.RUNNING);
    }

    @Override
    public void onPregrant(final int taskId, final boolean pregranted) {
        log.add(nowNs + " ns: " + (pregranted ? "pre-grant" : "no pre-grant") + " of task " + taskId);
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long ofTicket, final long deadlineNs) {
        log.add(nowNs + " ns: task " + taskId + " misses " + deadlineNs);
    }

    @Override
    public void onOverrun(final int taskId, final long ofTicket, final long budgetNs) {
        log.add(nowNs + " ns: task " + taskId + " overruns " + budgetNs);
    }
}
