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
 * leads, its context has the GPU to itself: every other context is to be disabled, save the protected ones and, if
 * {@link #setKeepReady} says so, those of idle tasks that may preempt it at once. While none is begun, all best-effort
 * segments run and all contexts are to be enabled.
 *
 * <h2>Several tasks of one context</h2>
 * The hardware cannot tell them apart, so the grant does: a segment whose context already has a granted one waits until
 * that has ended, unless both are best effort. Meanwhile the granted one runs with the rank of the best segment of its
 * context (inheritance). A begin that did not wait (optimistic) can break this; then the best of the granted ones
 * counts as running.
 *
 * <h2>Gate</h2>
 * If the mechanism cannot preempt ({@link SchedulerConfig#preemptive()} is false), what runs is never
 * preempted, a real-time segment waits until every granted segment of its GPU has ended, no best-effort segment is
 * granted while a real-time one is begun, contexts are always to be enabled and there are no pre-grants.
 *
 * <h2>Overruns</h2>
 * A segment that uses up its budget or its window is reported, and then what its task's {@link OverrunAction} says
 * happens within the same event (see {@code rt-scheduler/docs/adr/0020-overruns.md}).
 *
 * <h2>What takes part</h2>
 * Some segments and contexts are held back whatever the policy's order is: those whose time partition is closed, those
 * of a suspended context, and, while no real-time segment leads, best-effort groups that do not have the turn or have
 * used up their cap (see {@code rt-scheduler/docs/adr/0021-shares-and-partitions.md}). All else is decided among the
 * others. A segment that is held back waits, or is preempted if it was granted.
 *
 * <h2>Times</h2>
 * All in ns of CLOCK_MONOTONIC, never negative. {@code nowNs} should not decrease from call to call; one that lies
 * before an earlier one counts as that earlier one. Every event first reports what is due by then, as {@link
 * #onTimer} does.
 *
 * <p>This class is the one entrance to a decision, and most of its length is the description of its events and
 * questions. What runs is chosen by {@link SegmentChooser}, what is enabled by {@link DesiredContexts}, time slices by
 * {@link TimeSlices}, turns and caps by {@link FairShares}, pre-grants by {@link PregrantTable}.
 *
 * <p>Not thread-safe: one thread drives it, and the sink must not call back. No event allocates. The cost of an event
 * is linear in the number of begun segments of the GPU and of changed contexts and pre-grants (of known contexts, while
 * partitions, weights, caps or suspensions are in use); it does not depend on the number of open tasks.
 */
public final class SegmentScheduler {
    /** No such task or time. */
    public static final int NONE = -1;
    /** Weight of a group that was given none. */
    public static final int WEIGHT_DEFAULT = FairShares.WEIGHT_DEFAULT;
    /** The highest weight. */
    public static final int WEIGHT_MAX = FairShares.WEIGHT_MAX;
    /** The shortest period of a cap, ns. */
    public static final long PERIOD_MIN_NS = FairShares.PERIOD_MIN_NS;
    /** The longest period of a cap, and the longest quantum, ns. */
    public static final long PERIOD_MAX_NS = FairShares.PERIOD_MAX_NS;
    /** The shortest quantum, ns. */
    public static final long QUANTUM_MIN_NS = 100_000;

    /** Longest resume hold-off. */
    public static final long HOLDOFF_MAX_NS = 10_000_000;

    private final SchedulerConfig config;
    private final DecisionSink sink;
    private final SegmentTable segments;
    private final ContextTable contexts;
    private final PregrantTable pregrants;
    private final TimerHeap timers;

    /** Begun segments of each GPU, in the order of the last decision; a new one stands at the end until the next. */
    private final int[][] begun;
    private final int[] begunCount;
    private final int[] running;
    private final SegmentChooser chooser;
    private final DesiredContexts desired;
    private final FairShares shares;
    private final TimeSlices slices;
    /** Suspended segments of each GPU. */
    private final int[] suspendedCount;
    /** Until then best-effort contexts stay off although no segment is begun; in the past = not so. */
    private final long[] restUntilNs;
    /** Whether the last decision of a GPU held contexts back for reasons that are not the policy's order. */
    private final boolean[] gated;

    private Policy policy;
    private long decision;
    private long clockNs;
    private boolean keepReady;
    private long holdoffNs;

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
        timers = new TimerHeap(config.maxTasks() + gpus);
        shares = new FairShares(2 * (config.maxContexts() + 1), gpus);
        slices = new TimeSlices(contexts, shares, sink, config);
        suspendedCount = new int[gpus];
        gated = new boolean[gpus];
        restUntilNs = new long[gpus];
        chooser = new SegmentChooser(segments, contexts, config.maxTasks(), policy);
        desired = new DesiredContexts(segments, contexts, pregrants, sink, config.maxContexts(), gpus);
        begun = new int[gpus][config.maxTasks() + 1];
        begunCount = new int[gpus];
        running = new int[gpus];
        java.util.Arrays.fill(running, NONE);
    }

    // ---- contexts and tasks ----------------------------------------------------------------------------------------

    /**
     * Makes a context known. It is taken to be on the hardware; if a real-time segment has that GPU to itself, the sink
     * is told at once to disable it.
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
        contexts.group[contextId] = ownGroup(contextId);
        shares.reset(ownGroup(contextId));
        slices.reset(contextId);
        if (isGated(gpu)) {
            decide(gpu);
        } else {
            desired.set(contextId, desired.background(gpu));
        }
        slices.refresh();
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
        final int only = listOnlyTask(contextId);
        if (isGated(contexts.gpu[contextId])) {
            desired.set(contextId, contexts.desired[contextId]);   // at least what a protected one must have
            decide(contexts.gpu[contextId]);
        } else {
            desired.set(contextId, desired.wants(contextId));
        }
        refreshPregrant(only);
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
        shares.left(contexts.group[contextId] == ownGroup(contextId));
        shares.reset(ownGroup(contextId));
        contexts.remove(contextId);
        decide(gpu);
        slices.refresh();
        return true;
    }

    /**
     * Opens a task.
     *
     * @param p its parameters
     * @throws IllegalArgumentException if the id is out of range or in use, the context is unknown or unmanaged, or its
     *     open tasks have another partition
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
        if (contexts.taskCount[c] > 0 && contexts.partition[c] != p.partition()) {
            throw new IllegalArgumentException("task " + t + ": partition is " + p.partition() + ", but context " + c
                + " has tasks of partition " + contexts.partition[c]
                + "; give all tasks of a process the same, or use another process");
        }
        contexts.partition[c] = p.partition();
        segments.openTask(p);
        final int sibling = contexts.firstTask(c);
        contexts.linkTask(c, t);
        list(t);
        if (sibling != ContextTable.NONE) {
            list(sibling);
        }
        if (isGated(contexts.gpu[c]) || isResting(contexts.gpu[c])) {
            decide(contexts.gpu[c]);   // its partition may have become another, or it may be on from now on
        } else {
            refreshReady(c);
        }
        refreshPregrant(sibling);
        refreshPregrant(t);
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
        final int only = listOnlyTask(c);
        if (wasBegun || isGated(gpu)) {
            decide(gpu, c);
        } else {
            refreshReady(c);
        }
        refreshPregrant(only);
        slices.refresh();
        return true;
    }

    /**
     * Keeps the contexts of idle pre-granted tasks enabled while a segment runs. Such a task is of higher rank than the
     * running one, or with classes of no lower class, and must be the only one of its context: no context is disabled
     * for a task of lower rank. Its begin then finds its context enabled. Under fixed priorities, if no two are equal,
     * a change of the running task either disables contexts or enables some. Work of such a process outside of segments
     * can disturb segments of lower rank. Of no meaning while time partitions, weights or caps decide. Initially not.
     *
     * @param keep  whether to
     * @param nowNs now
     */
    public void setKeepReady(final boolean keep, final long nowNs) {
        advance(nowNs);
        keepReady = keep;
        decideAll();
    }

    /**
     * Leaves best-effort contexts disabled when the last segment has ended: they are enabled only after this long,
     * unless a best-effort segment begins. A real-time segment that begins earlier finds them disabled and need not
     * wait. Contexts with real-time tasks are enabled at once. Of no meaning while time partitions, weights or caps
     * decide.
     *
     * @param ns    0..{@value #HOLDOFF_MAX_NS}; 0 = they are enabled at once
     * @param nowNs now
     * @throws IllegalArgumentException if it is out of range
     */
    public void setResumeHoldoff(final long ns, final long nowNs) {
        if (ns < 0 || ns > HOLDOFF_MAX_NS) {
            throw new IllegalArgumentException("resume hold-off is " + ns + " ns; it must be 0.." + HOLDOFF_MAX_NS);
        }
        advance(nowNs);
        holdoffNs = ns;
    }

    /**
     * Changes the priorities of a task; a begun segment is ranked anew at once, unless it was demoted.
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
            if (!segments.demoted[taskId]) {
                segments.rank[taskId] = resolved;
            }
            pregrants.relist(taskId);
            if (segments.state[taskId] != SegmentState.IDLE) {
                decide(contexts.gpu[segments.contextId[taskId]]);
            } else {
                refreshReady(segments.contextId[taskId]);
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
        chooser.policy(newPolicy);
        for (int gpu = 0; gpu < config.gpuCount(); gpu++) {
            decide(gpu);
        }
    }

    /**
     * Changes what follows when a task overruns. A segment that has overrun already, and is still begun, is treated as
     * the new action says from now on; {@link OverrunAction#NOTIFY} gives it back its rank and its context.
     *
     * @param taskId a task
     * @param action from now on
     * @param nowNs  now
     * @return false if the task is not open
     */
    public boolean setOverrunAction(final int taskId, final OverrunAction action, final long nowNs) {
        Objects.requireNonNull(action, "action");
        advance(nowNs);
        if (!isOpen(taskId)) {
            return false;
        }
        segments.overrun[taskId] = action;
        if (segments.state[taskId] != SegmentState.IDLE && segments.overrunReported[taskId]) {
            unsuspend(taskId);
            segments.promote(taskId);
            segments.skipNext[taskId] = false;
            act(taskId);
            decide(contexts.gpu[segments.contextId[taskId]]);
            qualify(taskId);
        } else if (action != OverrunAction.SKIP_NEXT && segments.skipNext[taskId]) {
            segments.skipNext[taskId] = false;
            qualify(taskId);
        }
        return true;
    }

    // ---- shares of best-effort work --------------------------------------------------------------------------------

    /**
     * The group that a context belongs to unless {@link #setGroup} puts it into another.
     *
     * @param contextId 0..{@link SchedulerConfig#maxContexts()}
     * @return a group of its own, to be used with {@link #setWeight} and {@link #setCap}
     */
    public int ownGroup(final int contextId) {
        return config.maxContexts() + 1 + contextId;
    }

    /**
     * Puts a context into a group. Weight and cap of the group hold for all its contexts together, on each GPU by
     * itself.
     *
     * @param contextId a known context
     * @param groupId   0..{@link SchedulerConfig#maxContexts()}: shared groups, whose numbers the caller chooses;
     *                  or {@link #NONE}: the context's own group again
     * @param nowNs     now
     * @return false if the context is not known
     * @throws IllegalArgumentException if the group is out of range
     */
    public boolean setGroup(final int contextId, final int groupId, final long nowNs) {
        if (groupId < NONE || groupId > config.maxContexts()) {
            throw new IllegalArgumentException("group " + groupId + ": the id must be 0.." + config.maxContexts()
                + ", or -1 for a group of its own");
        }
        advance(nowNs);
        if (contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId]) {
            return false;
        }
        final int own = ownGroup(contextId);
        shares.left(contexts.group[contextId] == own);
        contexts.group[contextId] = groupId == NONE ? own : groupId;
        shares.joined(contexts.group[contextId] == own);
        decideAll();
        return true;
    }

    /**
     * The group of a context.
     *
     * @param contextId a context
     * @return its group, {@link #NONE} if it is not known
     */
    public int group(final int contextId) {
        return contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId] ? NONE
            : contexts.group[contextId];
    }

    /**
     * Sets the weight of a group: the share of the time in which best-effort work has the GPU that it gets, in
     * proportion to the weights of the groups that compete with it. It stays until changed, contexts or not (that of a
     * context's own group until the context is removed).
     *
     * @param groupId a group, see {@link #setGroup} and {@link #ownGroup}
     * @param weight  1..{@value #WEIGHT_MAX}; the default is {@value #WEIGHT_DEFAULT}
     * @param nowNs   now
     * @throws IllegalArgumentException if one is out of range
     */
    public void setWeight(final int groupId, final int weight, final long nowNs) {
        requireGroup(groupId);
        if (weight < 1 || weight > WEIGHT_MAX) {
            throw new IllegalArgumentException("weight is " + weight + "; it must be 1.." + WEIGHT_MAX
                + " (the default is " + WEIGHT_DEFAULT + ")");
        }
        advance(nowNs);
        chargeAll();
        shares.setWeight(groupId, weight);
        decideAll();
    }

    /**
     * Limits a group: in each period its best-effort work has a GPU no longer than the quota (each GPU by itself). Time
     * that real-time segments use does not count. Unused quota is not carried over. It stays as a weight does.
     *
     * @param groupId  a group, see {@link #setGroup} and {@link #ownGroup}
     * @param quotaNs  ns of each period, 1..periodNs; 0 = no limit
     * @param periodNs {@value #PERIOD_MIN_NS}..{@value #PERIOD_MAX_NS} ns; not looked at without a limit
     * @param nowNs    now; the first period begins here
     * @throws IllegalArgumentException if one is out of range
     */
    public void setCap(final int groupId, final long quotaNs, final long periodNs, final long nowNs) {
        requireGroup(groupId);
        if (quotaNs != 0 && (periodNs < PERIOD_MIN_NS || periodNs > PERIOD_MAX_NS)) {
            throw new IllegalArgumentException("cap: the period is " + periodNs + " ns; it must be " + PERIOD_MIN_NS
                + ".." + PERIOD_MAX_NS);
        }
        if (quotaNs < 0 || quotaNs != 0 && quotaNs > periodNs) {
            throw new IllegalArgumentException("cap: the quota is " + quotaNs
                + " ns; it must be positive and no longer than the period, or 0 for no limit");
        }
        advance(nowNs);
        chargeAll();
        shares.setCap(groupId, quotaNs, quotaNs == 0 ? 0 : periodNs, clockNs);
        decideAll();
    }

    /**
     * How unequal weights become unequal shares. Caps are always kept by turns.
     *
     * @param how       turns or timeslices
     * @param quantumNs turns: the longest turn while others wait, {@value #QUANTUM_MIN_NS}..{@value #PERIOD_MAX_NS};
     *                  timeslices: the slice of a context of weight {@value #WEIGHT_DEFAULT} that is alone in its group
     * @param nowNs     now
     * @throws IllegalArgumentException if the quantum is out of range
     */
    public void setSharing(final Sharing how, final long quantumNs, final long nowNs) {
        Objects.requireNonNull(how, "how");
        if (quantumNs < QUANTUM_MIN_NS || quantumNs > PERIOD_MAX_NS) {
            throw new IllegalArgumentException("quantum is " + quantumNs + " ns; it must be " + QUANTUM_MIN_NS + ".."
                + PERIOD_MAX_NS);
        }
        advance(nowNs);
        chargeAll();
        shares.sharing(how);
        shares.quantumNs(how == Sharing.TURNS ? quantumNs : FairShares.QUANTUM_DEFAULT_NS);
        slices.base(how == Sharing.TIMESLICES ? quantumNs : 0);
        decideAll();
    }

    /**
     * Says when a decision about a context took effect, so that turns and caps count the time on the hardware and not
     * the time of the operations. If it is never called, the cost of a switch is charged to the incoming group.
     *
     * @param contextId the context that was switched
     * @param on        whether it came on or went off
     * @param atNs      when
     * @param nowNs     now
     */
    public void onApplied(final int contextId, final boolean on, final long atNs, final long nowNs) {
        advance(nowNs);
        if (contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId] || !shares.isInUse()) {
            return;
        }
        final int gpu = contexts.gpu[contextId];
        if (gated[gpu] && shares.applied(gpu, contexts.group[contextId], on, atNs)) {
            decide(gpu);
        }
    }

    /**
     * The weight of a group.
     *
     * @param groupId a group
     * @return 1..{@value #WEIGHT_MAX}
     */
    public int weight(final int groupId) {
        requireGroup(groupId);
        return shares.weight(groupId);
    }

    /**
     * The cap of a group: what it may use of each period.
     *
     * @param groupId a group
     * @return ns, 0 = no limit
     */
    public long quotaNs(final int groupId) {
        requireGroup(groupId);
        return shares.quotaNs(groupId);
    }

    /**
     * The period of a group's cap.
     *
     * @param groupId a group
     * @return ns, 0 = no limit
     */
    public long periodNs(final int groupId) {
        requireGroup(groupId);
        return shares.periodNs(groupId);
    }

    private void requireGroup(final int g) {
        if (g < 0 || g > ownGroup(config.maxContexts())) {
            throw new IllegalArgumentException("group " + g + ": the id must be 0.." + config.maxContexts()
                + ", or that of a context's own group");
        }
    }

    private void chargeAll() {
        for (int gpu = 0; gpu < config.gpuCount(); gpu++) {
            if (gated[gpu]) {
                shares.charge(gpu, clockNs);
            }
        }
    }

    private void decideAll() {
        for (int gpu = 0; gpu < config.gpuCount(); gpu++) {
            decide(gpu);
        }
        slices.refresh();
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
     * @return {@link Outcome#ACCEPTED}, {@link Outcome#UNKNOWN_TASK}, {@link Outcome#OLD_TICKET},
     *     {@link Outcome#ALREADY_BEGUN}, or {@link Outcome#SKIPPED}: the ticket is used up, nothing is begun
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
        final boolean skip = segments.skipNext[taskId];
        segments.skipNext[taskId] = false;
        if (skip && !optimistic) {
            qualify(taskId);
            segments.ticket[taskId] = ticket;
            return Outcome.SKIPPED;
        }
        segments.beginSegment(taskId, ticket, releaseNs, deadlineNs, beginNs, optimistic);
        if (skip) {
            segments.demote(taskId);   // its caller has gone on
            list(taskId);
        }
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        begun[gpu][begunCount[gpu]++] = taskId;
        setTimer(taskId);
        decide(gpu);
        if (skip) {
            pregrants.refresh(taskId);
        }
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
        decide(gpu, segments.contextId[taskId]);   // if it was demoted, it can outrank the running one again
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
     * When {@link #onTimer} has something to report or to decide. A deadline or a budget is reported from 1 ns after it
     * on: a segment that ends exactly at its deadline, or uses exactly its budget, keeps it.
     *
     * @return ns, {@link Long#MAX_VALUE} if nothing is due at any time
     */
    public long nextTimerNs() {
        return timers.nextNs();
    }

    /**
     * Reports missed deadlines and overrun budgets, each once per segment, in order of time, then of task id, does what
     * a task's {@link OverrunAction} says, opens and closes windows of partitions and hands over turns.
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
     * Whether a task's begun segment counts as a real-time one: its task is, and it was not demoted.
     *
     * @param taskId a task
     * @return false if no segment is begun
     */
    public boolean isRealTime(final int taskId) {
        return state(taskId) != SegmentState.IDLE && Priority.isRealTime(segments.rank[taskId]);
    }

    /**
     * Whether a task's begun segment was demoted to best effort after an overrun.
     *
     * @param taskId a task
     * @return false if no segment is begun
     */
    public boolean isDemoted(final int taskId) {
        return state(taskId) != SegmentState.IDLE && segments.demoted[taskId];
    }

    /**
     * Whether a task's begun segment has its context disabled after an overrun.
     *
     * @param taskId a task
     * @return false if no segment is begun
     */
    public boolean isSuspended(final int taskId) {
        return state(taskId) != SegmentState.IDLE && segments.suspended[taskId];
    }

    /**
     * What follows when a task overruns.
     *
     * @param taskId an open task
     * @return its action, null if the task is not open
     */
    public OverrunAction overrunAction(final int taskId) {
        return isOpen(taskId) ? segments.overrun[taskId] : null;
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

    /** As {@link #decide(int)}; this context may have become that of an idle pre-granted task, or no longer be one. */
    private void decide(final int gpu, final int context) {
        desired.touch(context);
        decide(gpu);
        desired.touch(NONE);
    }

    private void decide(final int gpu) {
        final int[] order = begun[gpu];
        final int count = begunCount[gpu];
        chooser.sort(order, count);
        desired.start(gpu, ++decision);
        if (isGated(gpu)) {
            decideGated(gpu, order, count);
            return;
        }
        final boolean wasGated = gated[gpu];
        if (wasGated) {
            gated[gpu] = false;
            shares.leaveOff(gpu);
            timers.set(gpuTimer(gpu), Time.NEVER);
            contexts.unblockAll(gpu);
        }
        if (count == 0) {
            rest(gpu, wasGated);
        } else if (config.preemptive()) {
            endRest(gpu);
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
        final boolean all = wasGated || desired.wasBackground(gpu) != desired.background(gpu);
        desired.apply(gpu, all, false);
        leave(gpu, order, count);
        desired.apply(gpu, all, true);
        enter(gpu, order, count);
        desired.finish(gpu);
        if (config.preemptive() && config.optimistic()) {
            boundPregrants(gpu, order, count);
        }
    }

    private boolean isGated(final int gpu) {
        return policy.enforces() && (policy.isTimed() || shares.isInUse() || suspendedCount[gpu] > 0);
    }

    /** No segment is begun: everybody may run, best-effort contexts perhaps a little later. */
    private void rest(final int gpu, final boolean wasGated) {
        if (holdoffNs > 0 && running[gpu] != NONE && !desired.wasBackground(gpu) && !wasGated
            && policy.enforces()) {
            restUntilNs[gpu] = Time.addSaturating(clockNs, holdoffNs);
            timers.set(gpuTimer(gpu), restUntilNs[gpu]);
        }
        running[gpu] = NONE;
        if (!isResting(gpu)) {
            endRest(gpu);
            desired.background(gpu, true);
            return;
        }
        desired.background(gpu, false);
        for (int i = 0; i < contexts.steerableCount(gpu); i++) {
            final int c = contexts.steerable(gpu, i);
            if (hasRealTimeTask(c)) {
                desired.except(gpu, c, decision);
            }
        }
    }

    private boolean isResting(final int gpu) {
        return clockNs < restUntilNs[gpu];
    }

    private void endRest(final int gpu) {
        if (restUntilNs[gpu] != 0) {
            restUntilNs[gpu] = 0;
            timers.set(gpuTimer(gpu), Time.NEVER);
        }
    }

    private boolean hasRealTimeTask(final int c) {
        for (int t = contexts.firstTask(c); t != ContextTable.NONE; t = contexts.nextTask(t)) {
            if (Priority.isRealTime(segments.gpuPriority[t])) {
                return true;
            }
        }
        return false;
    }

    private int gpuTimer(final int gpu) {
        return config.maxTasks() + 1 + gpu;
    }

    /** As {@link #decide}, among those who are not held back; looks at every context of the GPU. */
    private void decideGated(final int gpu, final int[] order, final int count) {
        gated[gpu] = true;
        shares.charge(gpu, clockNs);
        markBegun(order, count);
        blockByTime(gpu, order, count);
        int leader = chooser.firstFree(order, count);
        final boolean shared = leader == NONE || chooser.admitsBackground(leader);
        if (shared) {
            takeTurns(gpu);
            leader = chooser.firstFree(order, count);
        } else {
            shares.pause(gpu, clockNs);
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
        applyGated(gpu, shared, false);
        leave(gpu, order, count);
        applyGated(gpu, shared, true);
        enter(gpu, order, count);
        if (config.preemptive() && config.optimistic()) {
            boundPregrants(gpu, order, count);
        }
        final boolean idle = count == 0 && contexts.steerableCount(gpu) == 0;
        timers.set(gpuTimer(gpu), idle ? Time.NEVER
            : Math.min(policy.nextChangeNs(clockNs), shares.nextNs(gpu)));
    }

    private void markBegun(final int[] order, final int count) {
        for (int i = 0; i < count; i++) {
            contexts.begunIn[segments.contextId[order[i]]] = decision;
        }
    }

    /** Holds back whose partition is closed or whose context is suspended, and lets all others go. */
    private void blockByTime(final int gpu, final int[] order, final int count) {
        boolean lent = policy.isTimed() && policy.lendsIdle(clockNs);
        for (int i = 0; i < count && lent; i++) {
            final int c = segments.contextId[order[i]];
            lent = contexts.suspended[c] > 0 || !policy.isOpen(contexts.partition[c], clockNs);
        }
        for (int i = 0; i < count; i++) {
            blockByTime(segments.contextId[order[i]], lent);
        }
        for (int i = 0; i < contexts.steerableCount(gpu); i++) {
            blockByTime(contexts.steerable(gpu, i), lent);
        }
    }

    private void blockByTime(final int c, final boolean lent) {
        contexts.blocked[c] = contexts.suspended[c] > 0
            || policy.isTimed() && !lent && !policy.isOpen(contexts.partition[c], clockNs);
    }

    /** Best effort has the GPU: holds back the groups whose turn it is not. */
    private void takeTurns(final int gpu) {
        if (!shares.isInUse()) {
            shares.leaveOff(gpu);
            return;
        }
        final int n = contexts.steerableCount(gpu);
        shares.startRound(gpu);
        for (int i = 0; i < n; i++) {
            final int c = contexts.steerable(gpu, i);
            if (!contexts.blocked[c] && (contexts.begunIn[c] == decision
                || contexts.kind[c] == ContextKind.UNMANAGED)) {
                shares.compete(gpu, contexts.group[c]);
            }
        }
        shares.endRound(gpu, clockNs);
        for (int i = 0; i < n; i++) {
            final int c = contexts.steerable(gpu, i);
            if (!contexts.blocked[c]) {
                contexts.blocked[c] = !shares.isOn(gpu, contexts.group[c], clockNs);
            }
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
                segments.leaveRunning(t, clockNs);
                setTimer(t);
                sink.onPreempt(gpu, t, segments.ticket[t], running[gpu]);
            } else if (segments.state[t] == SegmentState.WAITING && segments.granted[t]) {
                segments.state[t] = SegmentState.PREEMPTED;
                segments.grantedNs[t] = clockNs;
                setTimer(t);
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
            segments.enterRunning(t, clockNs);
            setTimer(t);
            if (before == SegmentState.PREEMPTED) {
                sink.onResume(gpu, t, segments.ticket[t]);
            } else {
                sink.onGrant(gpu, t, segments.ticket[t]);
            }
        }
    }

    /**
     * Which contexts of idle tasks would stay enabled if a segment of this task ran now. Changes nothing.
     *
     * @param taskId an open real-time task
     * @param out    receives their ids, each once; as long as there are contexts
     * @return how many, 0 if they are disabled, too ({@link #setKeepReady}) or time partitions, weights or caps decide
     */
    public int readyFor(final int taskId, final int[] out) {
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        int n = 0;
        if (keepReady && !gated[gpu]) {
            final int ceiling = chooser.pregrantCeiling(taskId);
            for (int p = pregrants.levelFrom(gpu, ceiling + 1); p <= Priority.MAX;
                p = pregrants.levelFrom(gpu, p + 1)) {
                for (int t = pregrants.first(gpu, p); t != NONE; t = pregrants.next(t)) {
                    if (t != taskId && segments.state[t] == SegmentState.IDLE
                        && contexts.taskCount[segments.contextId[t]] == 1) {
                        out[n++] = segments.contextId[t];
                    }
                }
            }
        }
        return n;
    }

    /** Something changed that makes this context one of an idle pre-granted task, or not. */
    private void refreshReady(final int c) {
        if (keepReady && !gated[contexts.gpu[c]]) {
            desired.set(c, desired.wants(c));
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

    // ---- small steps -----------------------------------------------------------------------------------------------

    private void advance(final long nowNs) {
        if (nowNs > clockNs) {
            clockNs = nowNs;
        }
        while (timers.nextNs() <= clockNs && timers.nextNs() != Time.NEVER) {
            final int t = timers.next();
            if (t > config.maxTasks()) {
                timers.set(t, Time.NEVER);
                decide(t - config.maxTasks() - 1);
                continue;
            }
            if (segments.missDueNs(t) <= timers.nextNs()) {
                segments.missReported[t] = true;
                sink.onDeadlineMiss(t, segments.ticket[t], segments.deadlineNs[t]);
            } else {
                final long budgetNs = segments.dueBudgetNs(t);
                segments.overrunReported[t] = true;
                sink.onOverrun(t, segments.ticket[t], budgetNs);
                act(t);
            }
            setTimer(t);
        }
    }

    /** What follows an overrun that was just reported. */
    private void act(final int t) {
        final OverrunAction action = segments.overrun[t];
        if (action == OverrunAction.NOTIFY || !policy.enforces()) {
            return;
        }
        final int c = segments.contextId[t];
        final int gpu = contexts.gpu[c];
        if (action == OverrunAction.SKIP_NEXT) {
            segments.skipNext[t] = true;
        }
        if (!config.preemptive()) {
            drop(t, gpu);   // a gate cannot take the GPU away: let the next one in
        } else if (action == OverrunAction.SUSPEND) {
            segments.suspended[t] = true;
            contexts.suspended[c]++;
            suspendedCount[gpu]++;
        } else {
            segments.demote(t);
        }
        decide(gpu);
        qualify(t);
    }

    private void unsuspend(final int t) {
        if (segments.suspended[t]) {
            final int c = segments.contextId[t];
            segments.suspended[t] = false;
            contexts.suspended[c]--;
            suspendedCount[contexts.gpu[c]]--;
        }
    }

    private void setTimer(final int t) {
        timers.set(t, segments.state[t] == SegmentState.IDLE ? Time.NEVER
            : Math.min(segments.missDueNs(t), segments.overrunDueNs(t)));
    }

    private void drop(final int t, final int gpu) {
        final int[] list = begun[gpu];
        int at = 0;
        while (list[at] != t) {
            at++;
        }
        begunCount[gpu]--;
        System.arraycopy(list, at + 1, list, at, begunCount[gpu] - at);
        unsuspend(t);
        segments.endSegment(t);
        timers.set(t, Time.NEVER);
    }

    private void close(final int t, final int gpu) {
        if (segments.state[t] != SegmentState.IDLE) {
            drop(t, gpu);
        }
        final int c = segments.contextId[t];
        contexts.unlinkTask(c, t);
        if (contexts.taskCount[c] == 0) {
            contexts.partition[c] = 0;
        }
        pregrants.forget(t);
        segments.open[t] = false;
    }

    /** Contexts first, then the pre-grant, as {@link DecisionSink} promises. */
    private void qualify(final int t) {
        list(t);
        refreshReady(segments.contextId[t]);
        pregrants.refresh(t);
    }

    /** Whether a task qualifies may have changed. The sink is not told yet. */
    private void list(final int t) {
        pregrants.qualify(t, contexts.gpu[segments.contextId[t]], qualifies(t));
    }

    /** As {@link #list}; returns the task if the context has no other one, else {@link #NONE}. */
    private int listOnlyTask(final int c) {
        if (contexts.taskCount[c] != 1) {
            return NONE;
        }
        list(contexts.firstTask(c));
        return contexts.firstTask(c);
    }

    private void refreshPregrant(final int t) {
        if (t != NONE) {
            pregrants.refresh(t);
        }
    }

    /** A pre-grant is sound only for a task that is alone in its context, and whose context can be disabled. */
    private boolean qualifies(final int t) {
        final int c = segments.contextId[t];
        return config.optimistic() && config.preemptive() && segments.optimistic[t]
            && contexts.taskCount[c] == 1 && contexts.isSteerable(c) && !segments.skipNext[t];
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
