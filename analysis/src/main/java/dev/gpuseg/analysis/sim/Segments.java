/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.DecisionSink;
import dev.gpuseg.core.Outcome;
import dev.gpuseg.core.SegmentScheduler;
import java.util.Arrays;

/**
 * The begun segments: tells the live {@link SegmentScheduler} about begins and ends, receives its decisions, and
 * delivers grants when the enforcer has applied them.
 */
final class Segments implements DecisionSink {
    private static final byte NONE = 0;
    private static final byte WAITING = 1;
    private static final byte RUNNING = 2;
    private static final byte PREEMPTED = 3;

    private final Run run;
    private final SimulatedSet set;
    private SegmentScheduler scheduler;
    /** Null if nothing is anticipated. */
    private Anticipator anticipator;
    private final byte[] state;
    private final long[] sinceNs;
    private final long[] beginNs;
    private final long[] ticket;
    private final boolean[] pregranted;
    private final boolean[] granted;
    private final boolean[] grantDue;
    private final long[] grantGeneration;
    private boolean anyPending;

    Segments(final Run run) {
        this.run = run;
        set = run.set;
        final int n = set.taskCount;
        state = new byte[n];
        sinceNs = new long[n];
        beginNs = new long[n];
        ticket = new long[n];
        pregranted = new boolean[n];
        granted = new boolean[n];
        grantDue = new boolean[n];
        grantGeneration = new long[n];
    }

    void reset() {
        anyPending = false;
        Arrays.fill(state, NONE);
        Arrays.fill(ticket, 0);
        Arrays.fill(pregranted, false);
        Arrays.fill(granted, false);
        Arrays.fill(grantDue, false);
    }

    /** The scheduler of this run, whose sink this is. */
    void scheduler(final SegmentScheduler ofRun) {
        scheduler = ofRun;
    }

    /** What expects begins in this run; null = nothing does. */
    void anticipator(final Anticipator ofRun) {
        anticipator = ofRun;
    }

    /** When an expected begin is due. */
    long nextAnticipatedNs() {
        return anticipator == null ? EventQueue.NEVER : anticipator.nextNs();
    }

    /** Acts on expected begins that are due. */
    void anticipate() {
        anticipator.onTimer(run.nowNs);
        for (int g = 0; g < set.gpuCount; g++) {
            follow(g);
        }
        run.enforcers.enforceAll();
    }

    /** A grant waits for the state without a reservation, too: that may have disabled its context. */
    private void follow(final int gpu) {
        if (anticipator != null && anticipator.follow(gpu, run.nowNs)) {
            for (final int task : set.gpuTasks[gpu]) {
                if (state[task] == RUNNING) {
                    grantGeneration[task] = run.enforcers.generation(gpu);
                }
            }
        }
    }

    boolean isGranted(final int task) {
        return granted[task];
    }

    /** Its segment runs, and the update for it is complete. */
    boolean holdsGpu(final int task) {
        return state[task] == RUNNING
            && grantGeneration[task] <= run.enforcers.appliedGeneration(set.gpuOf[task]);
    }

    void begin(final int task) {
        final boolean atOnce = run.options.optimistic() && pregranted[task];
        ticket[task]++;
        granted[task] = atOnce;
        grantDue[task] = false;
        beginNs[task] = run.nowNs;
        state[task] = WAITING;
        sinceNs[task] = run.nowNs;
        final long arrivalNs = run.threads.arrivalNs(task);
        if (run.journal != null) {
            run.journal.onBegin(task, ticket[task], atOnce, arrivalNs, arrivalNs + set.deadlineNs[task], run.nowNs);
        }
        if (anticipator != null) {
            anticipator.begin(task + 1, run.nowNs);
        }
        require(scheduler.begin(task + 1, ticket[task], arrivalNs, arrivalNs + set.deadlineNs[task], atOnce,
            run.nowNs, run.nowNs), "begin", task);
        if (atOnce) {
            scheduler.onGiven(task + 1, ticket[task], run.nowNs);
        }
        follow(set.gpuOf[task]);
        if (set.realTime[task]) {
            run.newcomers.onBegin(set.gpuOf[task]);
        }
        run.enforcers.enforceAll();
        if (anticipator != null) {   // every second run marks releases
            anticipator.learn(task + 1, run.nowNs, (run.options.seed() & 1) == 0 ? 0 : arrivalNs, run.nowNs);
        }
    }

    void end(final int task) {
        changeState(task, NONE);
        if (run.journal != null) {
            run.journal.onEnded(task, ticket[task], run.nowNs);
        }
        require(scheduler.end(task + 1, ticket[task], run.nowNs), "end", task);
        if (anticipator != null) {
            anticipator.end(task + 1, run.nowNs);
        }
        follow(set.gpuOf[task]);
        run.enforcers.enforceAll();
    }

    private void require(final int outcome, final String what, final int task) {
        if (outcome != Outcome.ACCEPTED) {
            throw new IllegalStateException(what + " of task \"" + set.nameOf(task) + "\" at " + run.nowNs
                + " ns was refused: " + Outcome.name(outcome));
        }
    }

    private void changeState(final int task, final byte newState) {
        if (run.trace != null && run.nowNs > sinceNs[task] && state[task] != NONE) {
            run.trace.onSegment(set.gpuOf[task], task, state[task] == WAITING ? TraceSink.Activity.WAITING
                : state[task] == RUNNING ? TraceSink.Activity.HOLDING : TraceSink.Activity.PREEMPTED, sinceNs[task],
                run.nowNs);
        }
        state[task] = newState;
        sinceNs[task] = run.nowNs;
        run.cores.touch(task);   // a boost begins or ends
    }

    /** An update changed the context of a task. */
    void switched(final int task, final boolean on) {
        scheduler.onSwitched(set.contextOf[task] + 1, on, run.nowNs);
    }

    void deliverGrants(final int gpu) {
        if (!anyPending) {
            return;
        }
        for (final int task : set.gpuTasks[gpu]) {
            if (grantDue[task] && grantGeneration[task] <= run.enforcers.appliedGeneration(gpu)) {
                grantDue[task] = false;
                granted[task] = true;
                scheduler.onGiven(task + 1, ticket[task], run.nowNs);
                if (run.journal != null) {
                    run.journal.onGranted(task, ticket[task], run.nowNs);
                }
                run.observations.granted(task, run.nowNs - beginNs[task]);
                run.threads.onGranted(task);
            }
        }
        anyPending = false;
        for (int i = 0; i < grantDue.length && !anyPending; i++) {
            anyPending = grantDue[i];
        }
    }

    void finish() {
        for (int i = 0; i < state.length; i++) {
            changeState(i, NONE);
        }
    }

    @Override
    public void onContextDesired(final int gpu, final int contextId, final boolean enabled) {
        for (final int task : set.gpuTasks[gpu]) {
            if (set.contextOf[task] == contextId - 1) {
                run.enforcers.desire(gpu, task, enabled);
            }
        }
    }

    @Override
    public void onPreempt(final int gpu, final int taskId, final long segmentTicket, final int byTaskId) {
        run.observations.preemptions[taskId - 1]++;
        changeState(taskId - 1, PREEMPTED);
        if (run.journal != null) {
            run.journal.onPreempted(taskId - 1, segmentTicket, byTaskId - 1, run.nowNs);
        }
    }

    @Override
    public void onResume(final int gpu, final int taskId, final long segmentTicket) {
        changeState(taskId - 1, RUNNING);
        grantGeneration[taskId - 1] = run.enforcers.generation(gpu);
        if (run.journal != null) {
            run.journal.onResumed(taskId - 1, segmentTicket, run.nowNs);
        }
    }

    @Override
    public void onGrant(final int gpu, final int taskId, final long segmentTicket) {
        final int task = taskId - 1;
        changeState(task, RUNNING);
        grantGeneration[task] = run.enforcers.generation(gpu);
        if (!granted[task]) {
            grantDue[task] = true;
            anyPending = true;
        }
        if (run.journal != null && granted[task]) {
            run.journal.onGranted(task, segmentTicket, run.nowNs);
        } else if (run.journal != null) {
            run.journal.onDecided(task, segmentTicket, run.nowNs);
        }
    }

    @Override
    public void onPregrant(final int taskId, final boolean may) {
        pregranted[taskId - 1] = may;
    }

    @Override
    public void onDeadlineMiss(final int taskId, final long segmentTicket, final long missedNs) {
        // jobs are what the simulator judges; a segment that is late belongs to a job that will be
        if (run.journal != null) {
            run.journal.onMissed(taskId - 1, segmentTicket, missedNs, run.nowNs);
        }
    }

    @Override
    public void onOverrun(final int taskId, final long segmentTicket, final long budgetNs) {
        run.observations.overruns[taskId - 1]++;   // what follows arrives as decisions of its own
    }
}
