/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Arrays;

/**
 * Decides anew, from the begun segments of a GPU, which of them run and which contexts are to be enabled, and tells the
 * sink what changed: first what is disabled and preempted, then what is enabled, granted and resumed, then pre-grants.
 * {@link SegmentScheduler} calls it after every event; what an event itself is, it need not know.
 */
final class Arbiter {
    private static final int NONE = SegmentScheduler.NONE;

    private final SchedulerConfig config;
    private final DecisionSink sink;
    private final SegmentTable segments;
    private final ContextTable contexts;
    private final PregrantTable pregrants;
    private final TimerHeap timers;
    private final FairShares shares;
    private final HeldBack heldBack;
    private final SegmentChooser chooser;
    private final RealTimeShares accounts;
    private final DesiredContexts desired;

    /** Begun segments of each GPU, in the order of the last decision; a new one stands at the end until the next. */
    private final int[][] begun;
    private final int[] begunCount;
    private final int[] running;
    /** Whether the last decision of a GPU held contexts back for reasons that are not the policy's order. */
    private final boolean[] gated;

    /** Whom the last decision of a GPU let lead, {@link SegmentScheduler#NONE} if nobody. */
    private final int[] leaders;

    private Policy policy;
    private long decision;
    /** Counts the questions who is excused. */
    private long excusal;
    /** Of the decision being made. */
    private long nowNs;
    private boolean keepReady;

    Arbiter(final SchedulerConfig config, final DecisionSink sink, final SegmentTable segments,
        final ContextTable contexts, final PregrantTable pregrants, final TimerHeap timers, final FairShares shares,
        final HeldBack heldBack, final RealTimeShares accounts) {
        this.accounts = accounts;
        this.config = config;
        this.sink = sink;
        this.segments = segments;
        this.contexts = contexts;
        this.pregrants = pregrants;
        this.timers = timers;
        this.shares = shares;
        this.heldBack = heldBack;
        policy = config.policy();
        final int gpus = config.gpuCount();
        chooser = new SegmentChooser(segments, contexts, config.maxTasks(), policy);
        desired = new DesiredContexts(segments, contexts, pregrants, sink, config.maxContexts(), gpus);
        begun = new int[gpus][config.maxTasks() + 1];
        begunCount = new int[gpus];
        running = new int[gpus];
        Arrays.fill(running, NONE);
        gated = new boolean[gpus];
        leaders = new int[gpus];
        Arrays.fill(leaders, NONE);
    }

    // ---- settings; a decision of each GPU is to follow -------------------------------------------------------------

    void policy(final Policy newPolicy) {
        policy = newPolicy;
        heldBack.policy(newPolicy);
        chooser.policy(newPolicy);
    }

    void keepReady(final boolean keep) {
        keepReady = keep;
    }

    // ---- the begun segments ----------------------------------------------------------------------------------------

    /** A segment of this task begins; a decision is to follow. */
    void begin(final int gpu, final int t) {
        begun[gpu][begunCount[gpu]++] = t;
    }

    /** The begun segment of this task ends; a decision is to follow. */
    void end(final int gpu, final int t) {
        final int[] list = begun[gpu];
        int at = 0;
        while (list[at] != t) {
            at++;
        }
        begunCount[gpu]--;
        System.arraycopy(list, at + 1, list, at, begunCount[gpu] - at);
    }

    int begunCount(final int gpu) {
        return begunCount[gpu];
    }

    /** The first that runs, {@link SegmentScheduler#NONE} if none does. */
    int running(final int gpu) {
        return running[gpu];
    }

    /** Whether the last decision looked at contexts that are held back. */
    boolean isGated(final int gpu) {
        return gated[gpu];
    }

    /** Of which GPU a timer is; {@link SegmentScheduler#NONE} if it is none's. */
    int gpuOfTimer(final int timer) {
        return timer > config.maxTasks() && timer < accountTimer(0) ? timer - config.maxTasks() - 1 : NONE;
    }

    /** Of which row of {@link RealTimeShares} a timer is; {@link SegmentScheduler#NONE} if it is none's. */
    int rowOfTimer(final int timer) {
        return timer >= accountTimer(0) ? timer - accountTimer(0) : NONE;
    }

    private int accountTimer(final int row) {
        return config.maxTasks() + 1 + config.gpuCount() + row;
    }

    /** An account is charged from now on, or no longer, or has another limit. */
    void timeAccount(final int row) {
        timers.set(accountTimer(row), accounts.dueNs(row));
    }

    private int gpuTimer(final int gpu) {
        return config.maxTasks() + 1 + gpu;
    }

    // ---- single contexts, between decisions ------------------------------------------------------------------------

    /** A context without begun segments was added to a GPU on which nobody is held back. */
    void added(final int c) {
        desired.set(c, desired.background(contexts.gpu[c]));
    }

    /** Another kind of context may be disabled, or may no longer be. */
    void kindChanged(final int c, final long atNs) {
        if (heldBack.isPossible(contexts.gpu[c])) {
            desired.set(c, contexts.desired[c]);   // at least what a protected one must have
            decide(contexts.gpu[c], atNs);
        } else {
            desired.set(c, desired.wants(c));
        }
    }

    /** Something changed that makes this context one of an idle pre-granted task, or not. */
    void refreshReady(final int c) {
        if (keepReady && !gated[contexts.gpu[c]]) {
            desired.set(c, desired.wants(c));
        }
    }

    /** As {@link SegmentScheduler#readyFor}. */
    int readyFor(final int taskId, final int[] out) {
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        int n = 0;
        if (keepReady && !gated[gpu]) {
            final int ceiling = chooser.pregrantCeiling(taskId);
            for (int p = pregrants.levelFrom(gpu, ceiling + 1); p <= Priority.MAX;
                p = pregrants.levelFrom(gpu, p + 1)) {
                for (int t = pregrants.first(gpu, p); t != NONE; t = pregrants.next(t)) {
                    if (t != taskId && segments.state[t] == SegmentState.IDLE
                        && contexts.taskCount[segments.contextId[t]] == 1) {
                        if (out != null) {
                            out[n] = segments.contextId[t];
                        }
                        n++;
                    }
                }
            }
        }
        return n;
    }

    /** As {@link SegmentScheduler#disabledBy}. */
    int disabledBy(final int taskId) {
        final int c = segments.contextId[taskId];
        return contexts.steerableCount(contexts.gpu[c]) - (contexts.isSteerable(c) ? 1 : 0) - readyFor(taskId, null);
    }

    // ---- the decision ----------------------------------------------------------------------------------------------

    /** As {@link #decide(int, long)}; the context may have become one of an idle pre-granted task, or ceased to be. */
    void decide(final int gpu, final int context, final long atNs) {
        desired.touch(context);
        decide(gpu, atNs);
        desired.touch(NONE);
    }

    /** Decides anew and tells the sink what changed. */
    void decide(final int gpu, final long atNs) {
        nowNs = atNs;
        final int[] order = begun[gpu];
        final int count = begunCount[gpu];
        chooser.sort(order, count);
        desired.start(gpu, ++decision);
        if (heldBack.isPossible(gpu)) {
            decideGated(gpu, order, count);
            return;
        }
        final boolean wasGated = gated[gpu];
        if (wasGated) {
            gated[gpu] = false;
            heldBack.letAllGo(gpu);
            timers.set(gpuTimer(gpu), Time.NEVER);
        }
        if (count == 0) {
            running[gpu] = NONE;
            desired.background(gpu, true);
        } else if (config.preemptive()) {
            chooser.markContexts(order, count, order[0], decision);
            running[gpu] = chooser.chooseByContext(order, count, order[0]);
            desired.background(gpu, chooser.admitsBackground(order[0]));
            desired.except(gpu, order, count, decision);
            if (keepReady && !desired.background(gpu)) {
                desired.enableAbove(gpu, chooser.pregrantCeiling(order[0]));
            }
        } else {
            running[gpu] = chooser.chooseByGate(order, count, order[0]);
        }
        account(gpu, order, count, count == 0 ? NONE : order[0]);
        final boolean all = wasGated || desired.wasBackground(gpu) != desired.background(gpu);
        desired.apply(gpu, all, false);
        leave(gpu, order, count);
        desired.apply(gpu, all, true);
        enter(gpu, order, count);
        excuse(gpu, order, count, nowNs);
        desired.finish(gpu);
        if (config.preemptive() && config.optimistic()) {
            boundPregrants(gpu, order, count);
        }
    }

    /** As {@link #decide}, among those who are not held back; looks at every context of the GPU. */
    private void decideGated(final int gpu, final int[] order, final int count) {
        gated[gpu] = true;
        shares.charge(gpu, nowNs);
        heldBack.byTime(gpu, order, count, decision, nowNs);
        int leader = chooser.firstFree(order, count);
        final boolean shared = leader == NONE || chooser.admitsBackground(leader);
        if (shared) {
            heldBack.byTurn(gpu, decision, nowNs);
            leader = chooser.firstFree(order, count);
        } else {
            shares.pause(gpu, nowNs);
        }
        if (leader == NONE && config.preemptive()) {
            running[gpu] = NONE;
            chooser.chooseNone(order, count);
        } else if (config.preemptive()) {
            chooser.markContexts(order, count, leader, decision);
            running[gpu] = chooser.chooseByContext(order, count, leader);
        } else {
            running[gpu] = chooser.chooseByGate(order, count, leader);
        }
        account(gpu, order, count, leader);
        applyGated(gpu, shared, false);
        leave(gpu, order, count);
        applyGated(gpu, shared, true);
        enter(gpu, order, count);
        excuse(gpu, order, count, nowNs);
        if (config.preemptive() && config.optimistic()) {
            boundPregrants(gpu, order, count);
        }
        final boolean idle = count == 0 && contexts.steerableCount(gpu) == 0;
        timers.set(gpuTimer(gpu), idle ? Time.NEVER
            : Math.min(policy.nextChangeNs(nowNs), shares.nextNs(gpu)));
    }

    /**
     * Charges the accounts whose real-time segments have the GPU: that of the leader and of those that may run beside
     * it, though another task of the leader's context may run in its place. Behind a gate, those that run.
     */
    private void account(final int gpu, final int[] order, final int count, final int leader) {
        leaders[gpu] = leader;
        if (!accounts.isLimited() && accounts.userCount(gpu) == 0) {
            return;
        }
        for (int i = 0; i < count; i++) {
            if (isCharged(order[i], leader)) {
                accounts.use(segments.account[order[i]], gpu, decision, nowNs);
            }
        }
        for (int i = accounts.userCount(gpu) - 1; i >= 0; i--) {
            final int row = accounts.user(gpu, i);
            accounts.settle(gpu, i, decision, nowNs);
            timeAccount(row);
        }
    }

    private boolean isCharged(final int t, final int leader) {
        return leader != NONE && policy.enforces() && Priority.isRealTime(segments.rank[t]) && (config.preemptive()
            ? !chooser.isBlocked(t) && chooser.mayRunBeside(leader, t) : chooser.isChosen(t));
    }

    /** A segment that runs has the GPU from now on, or, for the moment, not. */
    void recount(final int gpu, final long atNs) {
        excuse(gpu, begun[gpu], begunCount[gpu], atNs);
    }

    /** Tells which accounts are charged for segments alone that run, but do not have the GPU yet. */
    private void excuse(final int gpu, final int[] order, final int count, final long atNs) {
        if (accounts.userCount(gpu) == 0 || !segments.countsFromGrants()) {
            return;
        }
        excusal++;
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            if (isCharged(t, leaders[gpu])) {
                final boolean awaits = segments.state[t] == SegmentState.RUNNING && segments.awaits[t];
                accounts.excuse(segments.account[t], gpu, excusal, awaits ? segments.runningSinceNs[t] : Time.NEVER,
                    atNs);
            }
        }
        for (int i = 0; i < accounts.userCount(gpu); i++) {
            timeAccount(accounts.user(gpu, i));
        }
    }

    private void applyGated(final int gpu, final boolean shared, final boolean enable) {
        for (int i = 0; config.preemptive() && i < contexts.steerableCount(gpu); i++) {
            final int c = contexts.steerable(gpu, i);
            final boolean wanted = !contexts.blocked[c]
                && (shared || contexts.begunIn[c] == decision && contexts.admitted[c]);
            if (wanted == enable) {
                desired.set(c, wanted);
            }
        }
    }

    private void leave(final int gpu, final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            if (chooser.isChosen(t)) {
                continue;
            }
            if (segments.state[t] == SegmentState.RUNNING) {
                segments.leaveRunning(t, nowNs);
                timers.set(t, segments.dueNs(t));
                sink.onPreempt(gpu, t, segments.ticket[t], running[gpu]);
            } else if (segments.state[t] == SegmentState.WAITING && segments.granted[t]) {
                segments.state[t] = SegmentState.PREEMPTED;
                segments.grantedNs[t] = nowNs;
                timers.set(t, segments.dueNs(t));
                sink.onGrant(gpu, t, segments.ticket[t]);
                sink.onPreempt(gpu, t, segments.ticket[t], running[gpu]);
            }
        }
    }

    private void enter(final int gpu, final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int before = segments.state[t];
            if (!chooser.isChosen(t) || before == SegmentState.RUNNING) {
                continue;
            }
            segments.enterRunning(t, nowNs, segments.countsFromGrants() && contexts.off[segments.contextId[t]]);
            timers.set(t, segments.dueNs(t));
            if (before == SegmentState.PREEMPTED) {
                sink.onResume(gpu, t, segments.ticket[t]);
            } else {
                sink.onGrant(gpu, t, segments.ticket[t]);
            }
        }
    }

    private void boundPregrants(final int gpu, final int[] order, final int count) {
        final int leader = count == 0 ? NONE : order[0];
        final int ceiling = count == 0 ? Priority.BELOW_ALL : chooser.pregrantCeiling(leader);
        final int leaderCeiling = count < 2 ? Priority.BELOW_ALL : chooser.pregrantCeiling(order[1]);
        if (gated[gpu]) {
            // A window may close, and a best-effort group may not have the turn, when the next begin comes.
            final int least = policy.isTimed() ? Priority.MAX : Priority.BEST_EFFORT;
            pregrants.bound(gpu, Priority.higher(ceiling, least), leader, Priority.higher(leaderCeiling, least));
        } else {
            pregrants.bound(gpu, ceiling, leader, leaderCeiling);
        }
    }
}
