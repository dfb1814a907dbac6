/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import java.util.Objects;

/**
 * Decides which begun segments may use which GPU. Events come in as calls, decisions go out through a
 * {@link DecisionSink}; the scheduler has no other effect, starts no thread and reads no clock.
 *
 * <h2>The rule</h2>
 * It keeps the set of begun segments of each GPU and at every event decides anew from that set (see
 * {@code rt-scheduler/docs/adr/0001-recompute-from-the-begun-set.md}). The first segment in the order of the
 * {@link Policy} leads; ties are broken by the earlier begin, then by the lower task id. While a real-time segment
 * leads, its context has the GPU to itself: every other context is desired off, save the protected ones. While none
 * is begun, all best-effort segments run and all contexts are desired on.
 *
 * <h2>Several tasks of one context</h2>
 * The hardware cannot tell them apart, so the grant does: a segment whose context already has a granted one waits until
 * that has ended, unless both are best effort. Meanwhile the granted one runs with the rank of the best segment of its
 * context (inheritance). A begin that did not wait (optimistic) can break this; then the best of the granted ones
 * counts as running.
 *
 * <h2>Gate</h2>
 * If the mechanism cannot take work off the GPU ({@link SchedulerConfig#preemptive()} is false), what runs is never
 * displaced, a real-time segment waits until every granted segment of its GPU has ended, no best-effort segment is
 * granted while a real-time one is begun, contexts are always desired on and there are no pre-grants.
 *
 * <h2>Times</h2>
 * All in ns of CLOCK_MONOTONIC, never negative. {@code nowNs} should not decrease from call to call; one that lies
 * before an earlier one counts as that earlier one. Every event first reports what is due by then, as {@link
 * #onTimer} does.
 *
 * <p>Not thread-safe: one thread drives it, and the sink must not call back. No event allocates. The cost of an event
 * is linear in the number of begun segments of the GPU and of changed contexts and pre-grants; it does not depend on
 * the number of open tasks.
 */
public final class SegmentScheduler {
    /** No such task or time. */
    public static final int NONE = -1;

    private final SchedulerConfig config;
    private final DecisionSink sink;
    private final SegmentTable segments;
    private final ContextTable contexts;
    private final PregrantTable pregrants;
    private final TimerHeap timers;
    private final SegmentView one;
    private final SegmentView other;

    /** Begun segments of each GPU, in the order of the last decision; a new one stands at the end until the next. */
    private final int[][] begun;
    private final int[] begunCount;
    /** Whether contexts without begun segments are desired on; the exceptions are the ones that differ. */
    private final boolean[] background;
    private int[][] exceptions;
    private int[][] exceptionsBefore;
    private final int[] exceptionCount;
    private final long[] decisionOf;
    private final int[] running;
    /** For each task, whether the decision being made lets it run. */
    private final boolean[] chosen;

    private Policy policy;
    private long decision;
    private long clockNs;

    /**
     * Reserves all memory that it will ever use.
     *
     * @param config sizes, policy and mode
     * @param sink   receives the decisions
     * @throws NullPointerException if an argument is null
     */
    public SegmentScheduler(final SchedulerConfig config, final DecisionSink sink) {
        this.config = Objects.requireNonNull(config, "config");
        this.sink = Objects.requireNonNull(sink, "sink");
        final int gpus = config.gpuCount();
        policy = config.policy();
        segments = new SegmentTable(config.maxTasks());
        contexts = new ContextTable(config.maxContexts(), config.maxTasks(), gpus);
        pregrants = new PregrantTable(segments, sink, config.maxTasks(), gpus);
        timers = new TimerHeap(config.maxTasks());
        one = new SegmentView(segments);
        other = new SegmentView(segments);
        begun = new int[gpus][config.maxTasks() + 1];
        begunCount = new int[gpus];
        background = new boolean[gpus];
        exceptions = new int[gpus][config.maxContexts() + 1];
        exceptionsBefore = new int[gpus][config.maxContexts() + 1];
        exceptionCount = new int[gpus];
        decisionOf = new long[gpus];
        running = new int[gpus];
        chosen = new boolean[config.maxTasks() + 1];
        java.util.Arrays.fill(background, true);
        java.util.Arrays.fill(running, NONE);
    }

    // ---- contexts and tasks ----------------------------------------------------------------------------------------

    /**
     * Makes a context known. It is taken to be on the hardware; if a real-time segment has that GPU to itself, the sink
     * is told at once that it is desired off.
     *
     * @param contextId 0..{@link SchedulerConfig#maxContexts()}; may be used again after removal
     * @param gpu       0..gpuCount - 1
     * @param kind      what it is
     * @throws IllegalArgumentException if a number is out of range or the context is already known
     */
    public void addContext(final int contextId, final int gpu, final ContextKind kind) {
        Objects.requireNonNull(kind, "kind");
        if (contextId < 0 || contextId > config.maxContexts()) {
            throw new IllegalArgumentException("context " + contextId + ": the id must be 0.." + config.maxContexts());
        }
        requireGpu(gpu);
        if (contexts.open[contextId]) {
            throw new IllegalArgumentException("context " + contextId + " is already known; remove it first");
        }
        contexts.add(contextId, gpu, kind);
        contexts.setSteerable(contextId, maySteer(kind));
        setDesired(contextId, background[gpu]);
    }

    /**
     * Changes what a context is, for example when a process that was found by itself registers.
     *
     * @param contextId a known context
     * @param kind      what it is now
     * @throws IllegalArgumentException if the context is not known, or is to become unmanaged while it has tasks
     */
    public void setContextKind(final int contextId, final ContextKind kind) {
        Objects.requireNonNull(kind, "kind");
        requireContext(contextId);
        if (kind == ContextKind.UNMANAGED && contexts.taskCount[contextId] > 0) {
            throw new IllegalArgumentException("context " + contextId + " has " + contexts.taskCount[contextId]
                + " open tasks and cannot be unmanaged; remove them first");
        }
        contexts.kind[contextId] = kind;
        contexts.setSteerable(contextId, maySteer(kind));
        setDesired(contextId, wants(contextId));
        qualifyOnlyTask(contextId);
    }

    /**
     * Forgets a context and all its tasks, begun or not: its process died. The sink is not told about what was removed,
     * only about what changes for others.
     *
     * @param contextId a context
     * @param nowNs     now
     * @return false if it was not known
     */
    public boolean removeContext(final int contextId, final long nowNs) {
        advance(nowNs);
        if (contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId]) {
            return false;
        }
        final int gpu = contexts.gpu[contextId];
        int t = contexts.firstTask(contextId);
        while (t != ContextTable.NONE) {
            final int next = contexts.nextTask(t);
            close(t, gpu);
            t = next;
        }
        contexts.remove(contextId);
        decide(gpu);
        return true;
    }

    /**
     * Opens a task.
     *
     * @param p its parameters
     * @throws IllegalArgumentException if the id is out of range or in use, or the context is unknown or unmanaged
     */
    public void addTask(final TaskParameters p) {
        final int t = p.taskId();
        if (t < 0 || t > config.maxTasks()) {
            throw new IllegalArgumentException("task " + t + ": the id must be 0.." + config.maxTasks());
        }
        if (segments.open[t]) {
            throw new IllegalArgumentException("task " + t + " is already open; remove it first");
        }
        final int c = p.contextId();
        requireContext(c);
        if (contexts.kind[c] == ContextKind.UNMANAGED) {
            throw new IllegalArgumentException("task " + t + ": context " + c
                + " is unmanaged and can have no tasks; make it managed first");
        }
        segments.openTask(p);
        final int sibling = contexts.firstTask(c);
        contexts.linkTask(c, t);
        if (sibling != ContextTable.NONE) {
            qualify(sibling);
        }
        qualify(t);
    }

    /**
     * Closes a task; a begun segment of it ends. The sink is not told about the task itself, only about what changes
     * for others.
     *
     * @param taskId a task
     * @param nowNs  now
     * @return false if it was not open
     */
    public boolean removeTask(final int taskId, final long nowNs) {
        advance(nowNs);
        if (!isOpen(taskId)) {
            return false;
        }
        final int c = segments.contextId[taskId];
        final int gpu = contexts.gpu[c];
        final boolean wasBegun = segments.state[taskId] != SegmentState.IDLE;
        close(taskId, gpu);
        if (wasBegun) {
            decide(gpu);
        }
        qualifyOnlyTask(c);
        return true;
    }

    /**
     * Changes the priorities of a task; a begun segment is ranked anew at once.
     *
     * @param taskId      a task
     * @param priority    0 best effort, 1..99 real time
     * @param gpuPriority 1..99; 0 = same as {@code priority}
     * @param nowNs       now
     * @return false if the task is not open
     * @throws IllegalArgumentException if a priority is out of range or the two contradict each other
     */
    public boolean setPriority(final int taskId, final int priority, final int gpuPriority, final long nowNs) {
        final int resolved = TaskParameters.resolveGpuPriority(taskId, priority, gpuPriority);
        advance(nowNs);
        if (!isOpen(taskId)) {
            return false;
        }
        if (segments.gpuPriority[taskId] != resolved) {
            segments.gpuPriority[taskId] = resolved;
            pregrants.relist(taskId);
            if (segments.state[taskId] != SegmentState.IDLE) {
                decide(contexts.gpu[segments.contextId[taskId]]);
            }
            pregrants.refresh(taskId);
        }
        return true;
    }

    /**
     * Replaces the policy; all begun segments are ranked anew at once.
     *
     * @param newPolicy the policy from now on
     * @param nowNs     now
     * @throws NullPointerException if the policy is null
     */
    public void setPolicy(final Policy newPolicy, final long nowNs) {
        Objects.requireNonNull(newPolicy, "newPolicy");
        advance(nowNs);
        policy = newPolicy;
        for (int gpu = 0; gpu < config.gpuCount(); gpu++) {
            decide(gpu);
        }
    }

    // ---- segments --------------------------------------------------------------------------------------------------

    /**
     * A segment begins.
     *
     * @param taskId     the task
     * @param ticket     higher than every earlier ticket of the task, positive
     * @param releaseNs  release of its job; 0 or less = {@code beginNs}
     * @param deadlineNs absolute deadline; 0 or less = release plus the task's relative deadline, if it has one
     * @param optimistic true if the caller did not wait for the grant: it is granted within this call, and reported
     *                   preempted right after if something better is there
     * @param beginNs    when the caller began; the tie-break among equals
     * @param nowNs      now
     * @return {@link Outcome#ACCEPTED}, {@link Outcome#UNKNOWN_TASK}, {@link Outcome#OLD_TICKET} or
     *     {@link Outcome#ALREADY_BEGUN}
     */
    public int begin(final int taskId, final long ticket, final long releaseNs, final long deadlineNs,
        final boolean optimistic, final long beginNs, final long nowNs) {
        advance(nowNs);
        if (!isOpen(taskId)) {
            return Outcome.UNKNOWN_TASK;
        }
        final boolean isBegun = segments.state[taskId] != SegmentState.IDLE;
        final long last = segments.ticket[taskId];
        if (ticket < last || ticket == last && !isBegun || ticket <= 0) {
            return Outcome.OLD_TICKET;
        }
        if (isBegun) {
            return Outcome.ALREADY_BEGUN;
        }
        segments.beginSegment(taskId, ticket, releaseNs, deadlineNs, beginNs, optimistic);
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        begun[gpu][begunCount[gpu]++] = taskId;
        setTimer(taskId);
        decide(gpu);
        return Outcome.ACCEPTED;
    }

    /**
     * A segment ends.
     *
     * @param taskId the task
     * @param ticket the ticket that it began with
     * @param nowNs  now
     * @return {@link Outcome#ACCEPTED}, {@link Outcome#UNKNOWN_TASK}, {@link Outcome#OLD_TICKET} (already ended) or
     *     {@link Outcome#NOT_BEGUN}
     */
    public int end(final int taskId, final long ticket, final long nowNs) {
        advance(nowNs);
        if (!isOpen(taskId)) {
            return Outcome.UNKNOWN_TASK;
        }
        final boolean isBegun = segments.state[taskId] != SegmentState.IDLE;
        final long last = segments.ticket[taskId];
        if (ticket > last || ticket <= 0) {
            return Outcome.NOT_BEGUN;
        }
        if (ticket < last || !isBegun) {
            return Outcome.OLD_TICKET;
        }
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        drop(taskId, gpu);
        decide(gpu);
        return Outcome.ACCEPTED;
    }

    /**
     * A begin gave up waiting. If it was granted in the meantime (the two crossed), this is its end.
     *
     * @param taskId the task
     * @param ticket the ticket that it began with
     * @param nowNs  now
     * @return as {@link #end}
     */
    public int cancel(final int taskId, final long ticket, final long nowNs) {
        return end(taskId, ticket, nowNs);
    }

    // ---- timers ----------------------------------------------------------------------------------------------------

    /**
     * When {@link #onTimer} has something to report. A deadline or a budget is reported from 1 ns after it on: a
     * segment that ends exactly at its deadline, or uses exactly its budget, keeps it.
     *
     * @return ns, {@link Long#MAX_VALUE} if nothing is due at any time
     */
    public long nextTimerNs() {
        return timers.nextNs();
    }

    /**
     * Reports missed deadlines and overrun budgets, each once per segment, in order of time, then of task id. It
     * changes no decision: what is to follow is the caller's choice (end the segment, change its priority).
     *
     * @param nowNs now
     */
    public void onTimer(final long nowNs) {
        advance(nowNs);
    }

    // ---- questions -------------------------------------------------------------------------------------------------

    /**
     * The running segment that comes first in the order of the policy: the one that has the GPU, or, while best-effort
     * segments share it, the one of them that began first.
     *
     * @param gpu 0..gpuCount - 1
     * @return its task, {@link #NONE} if no segment is begun on that GPU
     * @throws IllegalArgumentException if there is no such GPU
     */
    public int runningTask(final int gpu) {
        requireGpu(gpu);
        return running[gpu];
    }

    /**
     * The state of a task's segment.
     *
     * @param taskId a task
     * @return a constant of {@link SegmentState}; idle if the task is not open
     */
    public int state(final int taskId) {
        return isOpen(taskId) ? segments.state[taskId] : SegmentState.IDLE;
    }

    /**
     * Whether a task is open.
     *
     * @param taskId any number
     * @return true between {@link #addTask} and its removal
     */
    public boolean isOpen(final int taskId) {
        return taskId >= 0 && taskId <= config.maxTasks() && segments.open[taskId];
    }

    /**
     * The ticket of a task's begun segment.
     *
     * @param taskId a task
     * @return the ticket, 0 if no segment is begun
     */
    public long ticket(final int taskId) {
        return state(taskId) == SegmentState.IDLE ? 0 : segments.ticket[taskId];
    }

    /**
     * The absolute deadline of a task's begun segment.
     *
     * @param taskId a task
     * @return ns, {@link Long#MAX_VALUE} if no segment is begun or it has none
     */
    public long deadlineNs(final int taskId) {
        return state(taskId) == SegmentState.IDLE ? Time.NEVER : segments.deadlineNs[taskId];
    }

    /**
     * Whether the next begin of a task need not wait.
     *
     * @param taskId a task
     * @return what the sink was last told; false if the task is not open
     */
    public boolean isPregranted(final int taskId) {
        return isOpen(taskId) && pregrants.isPregranted(taskId);
    }

    /**
     * Whether a context is wanted on the hardware.
     *
     * @param contextId a context
     * @return what the sink was last told, true if it was told nothing; true for one that is not known
     */
    public boolean contextDesired(final int contextId) {
        return contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId]
            || contexts.desired[contextId];
    }

    /**
     * The number of begun segments.
     *
     * @param gpu 0..gpuCount - 1
     * @return waiting, running and preempted ones together
     * @throws IllegalArgumentException if there is no such GPU
     */
    public int begunCount(final int gpu) {
        requireGpu(gpu);
        return begunCount[gpu];
    }

    /**
     * The policy that decides now.
     *
     * @return the policy
     */
    public Policy policy() {
        return policy;
    }

    // ---- the decision ----------------------------------------------------------------------------------------------

    private void decide(final int gpu) {
        final int[] order = begun[gpu];
        final int count = begunCount[gpu];
        sort(order, count);
        decisionOf[gpu] = ++decision;
        final boolean wasBackground = background[gpu];
        final int wasExceptions = exceptionCount[gpu];
        exceptionCount[gpu] = 0;
        if (count == 0) {
            running[gpu] = NONE;
            background[gpu] = true;
        } else if (config.preemptive()) {
            markContexts(order, count);
            running[gpu] = chooseByContext(order, count);
            background[gpu] = policy.admitsBackground(one.at(order[0]));
            collectExceptions(gpu, order, count);
        } else {
            running[gpu] = chooseByGate(order, count);
        }
        applyContexts(gpu, wasBackground, wasExceptions, false);
        leave(gpu, order, count);
        applyContexts(gpu, wasBackground, wasExceptions, true);
        enter(gpu, order, count);
        final int[] spare = exceptionsBefore[gpu];
        exceptionsBefore[gpu] = exceptions[gpu];
        exceptions[gpu] = spare;
        if (config.preemptive() && config.optimistic()) {
            boundPregrants(gpu, order, count);
        }
    }

    /** Insertion sort: linear where the order still holds, which is nearly always. */
    private void sort(final int[] order, final int count) {
        for (int i = 1; i < count; i++) {
            final int t = order[i];
            int at = i;
            while (at > 0 && isBefore(t, order[at - 1])) {
                order[at] = order[at - 1];
                at--;
            }
            order[at] = t;
        }
    }

    private boolean isBefore(final int a, final int b) {
        final int byPolicy = policy.compare(one.at(a), other.at(b));
        if (byPolicy != 0) {
            return byPolicy < 0;
        }
        final long aBeginNs = segments.beginNs[a];
        final long bBeginNs = segments.beginNs[b];
        return aBeginNs != bBeginNs ? aBeginNs < bBeginNs : a < b;
    }

    private boolean mayRunBeside(final int a, final int b) {
        return a == b || policy.mayRunBeside(one.at(a), other.at(b));
    }

    /** A context is admitted by its best segment; what then runs in it is the first of its granted ones, if any. */
    private void markContexts(final int[] order, final int count) {
        final int leader = order[0];
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int c = segments.contextId[t];
            if (contexts.seen[c] != decision) {
                contexts.seen[c] = decision;
                contexts.firstGranted[c] = NONE;
                contexts.admitted[c] = false;
            }
            if (segments.granted[t] && contexts.firstGranted[c] == NONE) {
                contexts.firstGranted[c] = t;
            }
            if (!contexts.admitted[c] && mayRunBeside(leader, t)) {
                contexts.admitted[c] = true;
            }
        }
    }

    private int chooseByContext(final int[] order, final int count) {
        final int leader = order[0];
        int first = NONE;
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int c = segments.contextId[t];
            boolean choose = false;
            if (contexts.admitted[c]) {
                final int holder = contexts.firstGranted[c];
                if (holder == NONE) {
                    choose = mayRunBeside(leader, t);
                    if (choose) {
                        contexts.firstGranted[c] = t;
                    }
                } else {
                    choose = mayRunBeside(holder, t) && (segments.granted[t] || mayRunBeside(leader, t));
                }
            }
            chosen[t] = choose;
            if (choose && first == NONE) {
                first = t;
            }
        }
        return first;
    }

    private int chooseByGate(final int[] order, final int count) {
        final int leader = order[0];
        int holder = NONE;
        int granted = NONE;
        for (int i = count - 1; i >= 0; i--) {
            final int t = order[i];
            if (segments.state[t] == SegmentState.RUNNING) {
                holder = t;
            }
            if (segments.granted[t]) {
                granted = t;
            }
        }
        if (holder == NONE) {
            holder = granted == NONE ? leader : granted;
        }
        int first = NONE;
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            chosen[t] = segments.state[t] == SegmentState.RUNNING
                || mayRunBeside(holder, t) && (segments.granted[t] || mayRunBeside(leader, t));
            if (chosen[t] && first == NONE) {
                first = t;
            }
        }
        return first;
    }

    private void leave(final int gpu, final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            if (chosen[t]) {
                continue;
            }
            if (segments.state[t] == SegmentState.RUNNING) {
                segments.leaveRunning(t, clockNs);
                setTimer(t);
                sink.onPreempt(gpu, t, segments.ticket[t], running[gpu]);
            } else if (segments.state[t] == SegmentState.WAITING && segments.granted[t]) {
                segments.state[t] = SegmentState.PREEMPTED;
                sink.onGrant(gpu, t, segments.ticket[t]);
                sink.onPreempt(gpu, t, segments.ticket[t], running[gpu]);
            }
        }
    }

    private void enter(final int gpu, final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            final int t = order[i];
            final int before = segments.state[t];
            if (!chosen[t] || before == SegmentState.RUNNING) {
                continue;
            }
            segments.enterRunning(t, clockNs);
            setTimer(t);
            if (before == SegmentState.PREEMPTED) {
                sink.onResume(gpu, t, segments.ticket[t]);
            } else {
                sink.onGrant(gpu, t, segments.ticket[t]);
            }
        }
    }

    /** The contexts with begun segments for which the background of their GPU does not hold. */
    private void collectExceptions(final int gpu, final int[] order, final int count) {
        final int[] list = exceptions[gpu];
        int n = 0;
        for (int i = 0; i < count; i++) {
            final int c = segments.contextId[order[i]];
            if (contexts.admitted[c] != background[gpu] && contexts.exception[c] != decision) {
                contexts.exception[c] = decision;
                list[n++] = c;
            }
        }
        exceptionCount[gpu] = n;
    }

    private void applyContexts(final int gpu, final boolean wasBackground, final int wasExceptions,
        final boolean enable) {
        if (wasBackground != background[gpu]) {
            for (int i = 0; i < contexts.steerableCount(gpu); i++) {
                applyContext(contexts.steerable(gpu, i), enable);
            }
            return;
        }
        final int[] before = exceptionsBefore[gpu];
        for (int i = 0; i < wasExceptions; i++) {
            applyContext(before[i], enable);
        }
        final int[] now = exceptions[gpu];
        for (int i = 0; i < exceptionCount[gpu]; i++) {
            applyContext(now[i], enable);
        }
    }

    private void applyContext(final int c, final boolean enable) {
        // An exception of the decision before may have been removed since.
        if (contexts.open[c] && wants(c) == enable) {
            setDesired(c, enable);
        }
    }

    private boolean wants(final int c) {
        final int gpu = contexts.gpu[c];
        final boolean isException = contexts.exception[c] != 0 && contexts.exception[c] == decisionOf[gpu];
        return background[gpu] != isException;
    }

    private void setDesired(final int c, final boolean wanted) {
        final boolean enabled = wanted || !contexts.isSteerable(c);
        if (contexts.desired[c] != enabled) {
            contexts.desired[c] = enabled;
            sink.onContextDesired(contexts.gpu[c], c, enabled);
        }
    }

    private void boundPregrants(final int gpu, final int[] order, final int count) {
        final int leader = count == 0 ? NONE : order[0];
        final int ceiling = count == 0 ? Priority.BELOW_ALL : policy.pregrantCeiling(one.at(leader));
        final int leaderCeiling = count < 2 ? Priority.BELOW_ALL : policy.pregrantCeiling(one.at(order[1]));
        pregrants.bound(gpu, ceiling, leader, leaderCeiling);
    }

    // ---- small steps -----------------------------------------------------------------------------------------------

    private void advance(final long nowNs) {
        if (nowNs > clockNs) {
            clockNs = nowNs;
        }
        while (timers.nextNs() <= clockNs && timers.nextNs() != Time.NEVER) {
            final int t = timers.next();
            if (segments.missDueNs(t) <= timers.nextNs()) {
                segments.missReported[t] = true;
                sink.onDeadlineMiss(t, segments.ticket[t], segments.deadlineNs[t]);
            } else {
                segments.overrunReported[t] = true;
                sink.onOverrun(t, segments.ticket[t], segments.budgetNs[t]);
            }
            setTimer(t);
        }
    }

    private void setTimer(final int t) {
        timers.set(t, Math.min(segments.missDueNs(t), segments.overrunDueNs(t)));
    }

    private void drop(final int t, final int gpu) {
        final int[] list = begun[gpu];
        int at = 0;
        while (list[at] != t) {
            at++;
        }
        begunCount[gpu]--;
        System.arraycopy(list, at + 1, list, at, begunCount[gpu] - at);
        segments.endSegment(t);
        timers.set(t, Time.NEVER);
    }

    private void close(final int t, final int gpu) {
        if (segments.state[t] != SegmentState.IDLE) {
            drop(t, gpu);
        }
        contexts.unlinkTask(segments.contextId[t], t);
        pregrants.forget(t);
        segments.open[t] = false;
    }

    private void qualifyOnlyTask(final int c) {
        if (contexts.taskCount[c] == 1) {
            qualify(contexts.firstTask(c));
        }
    }

    /** A pre-grant is sound only for a task that is alone in its context, and whose context can be taken off. */
    private void qualify(final int t) {
        final int c = segments.contextId[t];
        final boolean qualifies = config.optimistic() && config.preemptive() && segments.optimistic[t]
            && contexts.taskCount[c] == 1 && contexts.isSteerable(c);
        pregrants.qualify(t, contexts.gpu[c], qualifies);
    }

    private boolean maySteer(final ContextKind kind) {
        return kind == ContextKind.MANAGED
            || kind == ContextKind.UNMANAGED && config.unmanaged() == Unmanaged.BEST_EFFORT;
    }

    private void requireGpu(final int gpu) {
        if (gpu < 0 || gpu >= config.gpuCount()) {
            throw new IllegalArgumentException("GPU " + gpu + ": the index must be 0.." + (config.gpuCount() - 1));
        }
    }

    private void requireContext(final int c) {
        if (c < 0 || c > config.maxContexts() || !contexts.open[c]) {
            throw new IllegalArgumentException("context " + c + " is not known; add it first");
        }
    }
}
