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
 * happens within the same event (see {@code rt-scheduler/docs/adr/0020-overruns.md}). After {@link #countFromGrants} a
 * budget does not count the time in which a segment runs by decision only: its grant is not given yet, or its context
 * is still disabled (see {@code rt-scheduler/docs/adr/0051-late-grants.md}).
 *
 * <h2>Room of its own</h2>
 * A task that is {@linkplain TaskParameters#reserved() reserved} has a part of the GPU that nobody else uses. Its
 * segments run from begin to end and take no part in any decision; its context is never disabled. Deadlines and budgets
 * are reported as for any task, but an overrun has no effect, save that the next begin can be refused.
 *
 * <h2>Accounts</h2>
 * The real-time segments of an account ({@link TaskParameters#account}) together have each GPU for no longer than its
 * share ({@link #setShare}). When that is used up, all of them are best effort until the credit is whole again.
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
 * <p>This class is the one entrance: events and questions, their checks, and what they do to tasks and contexts. It is
 * long because each has a description. {@link Arbiter} then decides: what runs with {@link SegmentChooser}, what is
 * enabled with {@link DesiredContexts}, who takes part with {@link HeldBack}. Time slices are in {@link TimeSlices},
 * turns and caps in {@link FairShares}, pre-grants in {@link PregrantTable}.
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

    private final SchedulerConfig config;
    private final DecisionSink sink;
    private final SegmentTable segments;
    private final ContextTable contexts;
    private final PregrantTable pregrants;
    private final TimerHeap timers;

    private final FairShares shares;
    private boolean chargesHints;
    private final RealTimeShares accounts;
    private final HeldBack heldBack;
    private final Arbiter arbiter;
    private final TimeSlices slices;

    private Policy policy;
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
        accounts = new RealTimeShares(config.maxContexts(), gpus);
        timers = new TimerHeap(config.maxTasks() + gpus + (config.maxContexts() + 1) * gpus);
        shares = new FairShares(2 * (config.maxContexts() + 1), gpus);
        slices = new TimeSlices(contexts, shares, sink, config);
        heldBack = new HeldBack(segments, contexts, shares, gpus, policy);
        arbiter = new Arbiter(config, sink, segments, contexts, pregrants, timers, shares, heldBack,
            accounts);
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
        if (heldBack.isPossible(gpu)) {
            decide(gpu);
        } else {
            arbiter.added(contextId);
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
        steer(contextId);
        final int only = listOnlyTask(contextId);
        arbiter.kindChanged(contextId, clockNs);
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
     * @throws IllegalArgumentException if the id is out of range or in use, the context is unknown or unmanaged, its
     *     open tasks have another partition, some of them are reserved and others are not, or the account is out of
     *     range
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
        if (contexts.taskCount[c] > 0 && contexts.reserved[c] != p.reserved()) {
            throw new IllegalArgumentException("task " + t + ": context " + c + " has tasks "
                + (p.reserved() ? "outside of the reserve" : "in the reserve")
                + "; give all tasks of a process a reserve, or none, or use another process");
        }
        requireAccount(p.account());
        contexts.partition[c] = p.partition();
        segments.openTask(p);
        if (accounts.isSpent(p.account(), contexts.gpu[c])) {
            spend(t, true);
        }
        final int sibling = contexts.firstTask(c);
        contexts.linkTask(c, t);
        if (p.reserved()) {
            setReserved(c, true);
            qualify(t);
            return;
        }
        list(t);
        if (sibling != ContextTable.NONE) {
            list(sibling);
        }
        if (heldBack.isPossible(contexts.gpu[c])) {
            decide(contexts.gpu[c]);   // its partition may have become another
        } else {
            arbiter.refreshReady(c);
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
        final boolean wasBegun = segments.state[taskId] != SegmentState.IDLE && !segments.reserved[taskId];
        close(taskId, gpu);
        if (contexts.reserved[c] && contexts.taskCount[c] == 0) {
            setReserved(c, false);
        }
        final int only = listOnlyTask(c);
        if (wasBegun || heldBack.isPossible(gpu)) {
            arbiter.decide(gpu, c, clockNs);
        } else {
            arbiter.refreshReady(c);
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
        arbiter.keepReady(keep);
        decideAll();
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
            segments.rerank(taskId);
            pregrants.relist(taskId);
            if (segments.state[taskId] != SegmentState.IDLE) {
                decide(contexts.gpu[segments.contextId[taskId]]);
            } else {
                arbiter.refreshReady(segments.contextId[taskId]);
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
        arbiter.policy(newPolicy);
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
            heldBack.letGo(taskId);
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
        onSwitched(contextId, on, atNs);
        if (contextId < 0 || contextId > config.maxContexts() || !contexts.open[contextId] || !shares.isInUse()) {
            return;
        }
        final int gpu = contexts.gpu[contextId];
        if (arbiter.isGated(gpu) && shares.applied(gpu, contexts.group[contextId], on, atNs)) {
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
            if (arbiter.isGated(gpu)) {
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

    // ---- shares of real-time work ----------------------------------------------------------------------------------

    /**
     * Limits what the real-time segments of an account use of each GPU (each GPU by itself). In any time d they have it
     * for no longer than percent / 100 * (d + 1 s), save the time by which {@link #onTimer} is late and what {@link
     * #countFromGrants} leaves out. With {@link #chargeHints} that includes the time for which it was reserved
     * for them. When the share is used up, they are best effort, on this GPU and for one second. Tasks of an account
     * whose uses sum to the share at most, with budgets that sum to half of the share of a second at most, are never
     * demoted. Of no effect while a policy decides that does not enforce; behind a gate, what runs goes on until its
     * end.
     *
     * @param account 1..{@link SchedulerConfig#maxContexts()}
     * @param percent 0..100; 100 = no limit
     * @param nowNs   now
     * @throws IllegalArgumentException if one is out of range
     */
    public void setShare(final int account, final int percent, final long nowNs) {
        requireAccount(account);
        if (account == 0 || percent < 0 || percent > RealTimeShares.WHOLE) {
            throw new IllegalArgumentException("account " + account + ", share " + percent + "%: use an account from 1 "
                + "on, and 0..100");
        }
        advance(nowNs);
        if (accounts.percent(account) == percent) {
            return;
        }
        accounts.limit(account, percent, clockNs);
        for (int gpu = 0; gpu < config.gpuCount(); gpu++) {
            if (percent == RealTimeShares.WHOLE && accounts.isSpent(account, gpu)) {
                turnAccount(accounts.row(account, gpu));
            }
            decide(gpu);
            arbiter.timeAccount(accounts.row(account, gpu));
        }
    }

    /**
     * From now on the share of an account also pays for the time for which a GPU is reserved after hints of its tasks.
     * Before the first event.
     */
    public void chargeHints() {
        chargesHints = true;
    }

    /** A GPU was reserved after a hint, whether the begin came or not. */
    void chargeReservation(final int taskId, final long tookNs, final long nowNs) {
        final int account = segments.account[taskId];
        if (!chargesHints || account == 0 || accounts.percent(account) == RealTimeShares.WHOLE) {
            return;
        }
        clockNs = Math.max(clockNs, nowNs);
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        accounts.take(account, gpu, tookNs, clockNs);
        arbiter.timeAccount(accounts.row(account, gpu));
    }

    // ---- what segments are known to have ---------------------------------------------------------------------------

    /**
     * From now on budgets and shares leave out time in which a segment runs by decision only. Whoever drives this
     * scheduler promises to call {@link #onGiven} for every grant, also where nobody waits for it, and {@link
     * #onApplied} or {@link #onSwitched} for every context that was disabled or enabled. Before the first event;
     * without it all time from a decision on counts.
     *
     * <p>What is left out is bounded, so that an operation that never comes is no way round a budget: 100 ms of each
     * segment for budget and window; for the share of an account, of each wait what goes beyond 2 ms, 100 ms at first
     * and one hundredth of the time in the long run.
     */
    public void countFromGrants() {
        segments.countFromGrants();
    }

    /**
     * The grant of a segment is given: its client may go on. Decides nothing, and calls no sink. Nothing happens if
     * that segment has ended.
     *
     * @param taskId the task
     * @param ticket the ticket that it began with
     * @param nowNs  now; for a begin that did not wait, the time of the decision
     */
    public void onGiven(final int taskId, final long ticket, final long nowNs) {
        if (!segments.countsFromGrants() || ticket(taskId) != ticket || segments.given[taskId]) {
            return;
        }
        clockNs = Math.max(clockNs, nowNs);
        segments.give(taskId, nowNs);
        final int c = segments.contextId[taskId];
        if (segments.awaits[taskId] && !contexts.off[c]) {
            startCount(taskId, nowNs);
        }
    }

    /**
     * A context was disabled or enabled. {@link #onApplied} says it too, and more; this decides nothing, and calls no
     * sink. Of no meaning without {@link #countFromGrants}.
     *
     * @param contextId the context
     * @param on        whether it was enabled
     * @param atNs      when
     */
    public void onSwitched(final int contextId, final boolean on, final long atNs) {
        if (!segments.countsFromGrants() || contextId < 0 || contextId > config.maxContexts()
            || !contexts.open[contextId] || contexts.off[contextId] == !on) {
            return;
        }
        contexts.off[contextId] = !on;
        for (int t = contexts.firstTask(contextId); t != ContextTable.NONE; t = contexts.nextTask(t)) {
            if (segments.state[t] != SegmentState.RUNNING || !segments.given[t]) {
                continue;
            }
            if (on && segments.awaits[t]) {
                startCount(t, atNs);
            } else if (!on && !segments.awaits[t]) {
                segments.stopCount(t, atNs);
                recount(t, atNs);
            }
        }
    }

    private void startCount(final int t, final long atNs) {
        segments.startCount(t, atNs);
        recount(t, atNs);
    }

    private void recount(final int t, final long atNs) {
        timers.set(t, segments.dueNs(t));
        arbiter.recount(contexts.gpu[segments.contextId[t]], Math.min(atNs, clockNs));
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
        final int gpu = contexts.gpu[segments.contextId[taskId]];
        if (segments.reserved[taskId]) {
            segments.enterRunning(taskId, clockNs, false);
            timers.set(taskId, segments.dueNs(taskId));
            sink.onGrant(gpu, taskId, ticket);
            qualify(taskId);
            return Outcome.ACCEPTED;
        }
        if (skip) {
            segments.demote(taskId);   // its caller has gone on
            list(taskId);
        }
        arbiter.begin(gpu, taskId);
        timers.set(taskId, segments.dueNs(taskId));
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
        if (segments.reserved[taskId]) {
            return Outcome.ACCEPTED;
        }
        // If it was demoted, it can outrank the running one again.
        arbiter.decide(gpu, segments.contextId[taskId], clockNs);
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
        return arbiter.running(gpu);
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
     * Whether a task's begun segment counts as a real-time one: its task is, it was not demoted, and it competes with
     * others, which a reserved one does not.
     *
     * @param taskId a task
     * @return false if no segment is begun
     */
    public boolean isRealTime(final int taskId) {
        return state(taskId) != SegmentState.IDLE && Priority.isRealTime(segments.rank[taskId]);
    }

    /**
     * Whether a task has room of its own.
     *
     * @param taskId a task
     * @return false if it is not open
     */
    public boolean isReserved(final int taskId) {
        return isOpen(taskId) && segments.reserved[taskId];
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
     * Whether the account of a task has used up its share, so that what the task begins is best effort.
     *
     * @param taskId a task
     * @return false if it is not open
     */
    public boolean isSpent(final int taskId) {
        return isOpen(taskId) && segments.spent[taskId];
    }

    /**
     * The share of an account.
     *
     * @param account 1..{@link SchedulerConfig#maxContexts()}
     * @return percent of each GPU, 100 = no limit
     */
    public int share(final int account) {
        requireAccount(account);
        return accounts.percent(account);
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
        return arbiter.begunCount(gpu);
    }

    /** The policy that decides now. */
    public Policy policy() {
        return policy;
    }

    /** How unequal weights become unequal shares. */
    public Sharing sharing() {
        return shares.sharing();
    }

    /**
     * The highest GPU priority among the open tasks of a context.
     *
     * @param contextId a known context
     * @return 1..99; 0 if it has no real-time task
     */
    public int highestPriority(final int contextId) {
        requireContext(contextId);
        int highest = 0;
        for (int t = contexts.firstTask(contextId); t != ContextTable.NONE; t = contexts.nextTask(t)) {
            highest = Math.max(highest, segments.gpuPriority[t]);
        }
        return highest;
    }

    /**
     * Whether an open task of a context belongs to an account that may not have the whole GPU.
     *
     * @param contextId a known context
     * @return false if it has no such task
     */
    public boolean hasLimitedShare(final int contextId) {
        requireContext(contextId);
        boolean limited = false;
        for (int t = contexts.firstTask(contextId); t != ContextTable.NONE; t = contexts.nextTask(t)) {
            limited |= accounts.percent(segments.account[t]) < RealTimeShares.WHOLE;
        }
        return limited;
    }

    /**
     * Whether a context may be disabled.
     *
     * @param contextId a known context
     * @return false for a protected one, and for one without tasks if those are left alone
     */
    public boolean isSteerable(final int contextId) {
        requireContext(contextId);
        return contexts.isSteerable(contextId);
    }

    /**
     * Which contexts of idle tasks would stay enabled if a segment of this task ran now. Changes nothing.
     *
     * @param taskId an open real-time task
     * @param out    receives their ids, each once; as long as there are contexts
     * @return how many, 0 if they are disabled, too ({@link #setKeepReady}) or time partitions, weights or caps decide
     */
    public int readyFor(final int taskId, final int[] out) {
        return arbiter.readyFor(taskId, out);
    }

    /**
     * The contexts whose tasks have room of their own: they stay enabled whatever else is decided.
     *
     * @param gpu 0..gpuCount - 1
     * @param out receives their ids, in no order; at least as long as there can be contexts
     * @return how many
     */
    public int reservedContexts(final int gpu, final int[] out) {
        requireGpu(gpu);
        return contexts.reserved(gpu, out);
    }

    /** A number that is another whenever {@link #reservedContexts} of some GPU gives others. */
    public long reservedContextsVersion() {
        return contexts.reservedVersion();
    }

    /**
     * How many contexts would be disabled if a segment of this task ran now and nothing else decided. Changes nothing.
     *
     * @param taskId an open real-time task
     * @return how many, those included that are disabled already
     */
    public int disabledBy(final int taskId) {
        return arbiter.disabledBy(taskId);
    }

    /**
     * Whether contexts of a GPU can be disabled for a begin that is only expected: segments can be preempted, the
     * policy decides, and neither time partitions nor shares nor suspensions do.
     *
     * @param gpu 0..gpuCount - 1
     * @return false if a {@link Reservation} would have no or another effect
     */
    public boolean mayReserve(final int gpu) {
        requireGpu(gpu);
        return config.preemptive() && policy.enforces() && !heldBack.isPossible(gpu);
    }

    // ---- small steps -----------------------------------------------------------------------------------------------

    private void decide(final int gpu) {
        arbiter.decide(gpu, clockNs);
    }

    private void advance(final long nowNs) {
        if (nowNs > clockNs) {
            clockNs = nowNs;
        }
        while (timers.nextNs() <= clockNs && timers.nextNs() != Time.NEVER) {
            final int t = timers.next();
            if (arbiter.rowOfTimer(t) != NONE) {
                turnAccount(arbiter.rowOfTimer(t));
                continue;
            }
            final int gpu = arbiter.gpuOfTimer(t);
            if (gpu != NONE) {
                timers.set(t, Time.NEVER);
                decide(gpu);
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
            timers.set(t, segments.dueNs(t));
        }
    }

    /**
     * The share of an account is used up, or whole again. Looks at every task, which is rare: an account is spent for a
     * whole period.
     */
    private void turnAccount(final int row) {
        final int account = accounts.account(row);
        final int gpu = accounts.gpu(row);
        final boolean before = accounts.isSpent(account, gpu);
        final boolean spent = accounts.turn(row, clockNs);
        arbiter.timeAccount(row);
        if (spent == before) {
            return;
        }
        for (int t = 0; t <= config.maxTasks(); t++) {
            if (isIn(t, account, gpu)) {
                spend(t, spent);
            }
        }
        decide(gpu);
        for (int t = 0; t <= config.maxTasks(); t++) {
            if (isIn(t, account, gpu)) {
                qualify(t);
            }
        }
    }

    private boolean isIn(final int t, final int account, final int gpu) {
        return segments.open[t] && segments.account[t] == account && contexts.gpu[segments.contextId[t]] == gpu;
    }

    private void spend(final int t, final boolean spent) {
        segments.spent[t] = spent;
        segments.rerank(t);
        sink.onShare(t, spent);
    }

    /** What follows an overrun that was just reported. */
    private void act(final int t) {
        final OverrunAction action = segments.overrun[t];
        if (action == OverrunAction.NOTIFY || !policy.enforces()) {
            return;
        }
        final int gpu = contexts.gpu[segments.contextId[t]];
        if (action == OverrunAction.SKIP_NEXT) {
            segments.skipNext[t] = true;
        }
        if (segments.reserved[t]) {
            qualify(t);
            return;
        }
        if (!config.preemptive()) {
            drop(t, gpu);   // a gate cannot take the GPU away: let the next one in
        } else if (action == OverrunAction.SUSPEND) {
            heldBack.suspend(t);
        } else {
            segments.demote(t);
        }
        decide(gpu);
        qualify(t);
    }

    private void drop(final int t, final int gpu) {
        if (!segments.reserved[t]) {
            arbiter.end(gpu, t);
        }
        heldBack.letGo(t);
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

    private void setReserved(final int c, final boolean reserved) {
        contexts.setReserved(c, reserved);
        steer(c);
        arbiter.kindChanged(c, clockNs);
    }

    private void steer(final int c) {
        contexts.setSteerable(c, maySteer(contexts.kind[c]) && !contexts.reserved[c]);
    }

    /** Contexts first, then the pre-grant, as {@link DecisionSink} promises. */
    private void qualify(final int t) {
        list(t);
        arbiter.refreshReady(segments.contextId[t]);
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
        if (segments.reserved[t]) {
            return config.optimistic() && segments.optimistic[t] && !segments.skipNext[t];
        }
        return config.optimistic() && config.preemptive() && segments.optimistic[t]
            && contexts.taskCount[c] == 1 && contexts.isSteerable(c) && !segments.skipNext[t] && !segments.spent[t];
    }

    private void requireAccount(final int account) {
        if (account < 0 || account > config.maxContexts()) {
            throw new IllegalArgumentException("account " + account + ": the id must be 0 (none) .. "
                + config.maxContexts());
        }
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
