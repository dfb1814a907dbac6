/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.Anticipate;
import dev.gpuseg.core.Anticipator;
import dev.gpuseg.core.Reservation;
import dev.gpuseg.core.SchedulerConfig;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.daemon.enforce.Enforcement;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.Arrays;

/**
 * Begins that are expected: tells the core's {@link Anticipator} of tasks, begins, costs and time, and has counted and
 * journaled what it decides. Its decisions are written after the event that led to them, so that a replay of the
 * journal takes them for what they are. Dispatcher thread only, allocates nothing per event.
 */
final class Anticipation implements Anticipator.Sink {
    /** How often work in flight is looked at; its end is known exactly. */
    private static final long DRAIN_LOOK_NS = 1_000_000;

    private final DesiredStates desired;
    private final TaskTable tasks;
    private final Counters counters;
    private final DispatcherJournal journal;
    private final CycleClock clock;
    private final Anticipator anticipator;

    /** By GPU: the newest state that disables a context, or in which a reservation began or ended. */
    private final long[] publishedVersion;
    private final long[] publishedNs;
    /** It is not enforced yet. */
    private final boolean[] isAwaited;
    /** It followed another before that was enforced: its time says nothing about one alone. */
    private final boolean[] isMixed;
    private final int[] disabled;
    /** Where disabled contexts have work in flight for a while. */
    private final boolean[] isDrained;
    private final Drains drains;
    /** By GPU: the task whose client was told that its begin is expected, {@link SegmentScheduler#NONE} if none was. */
    private final int[] toldTask;
    private boolean isSilent;

    /** Decisions that are not journaled yet. */
    private final int[] kinds;
    private final int[] taskIds;
    private final int[] gpus;
    private final long[] arg0;
    private final long[] arg1;
    private final long[] arg2;
    private int count;

    /**
     * @param config    of the scheduler
     * @param scheduler decides what runs
     * @param desired   where lower work is disabled
     * @param tasks     the open ones
     * @param counters  of what is decided
     * @param journal   where it is written down
     * @param clock     of the duty cycle
     */
    Anticipation(final SchedulerConfig config, final SegmentScheduler scheduler, final DesiredStates desired,
        final TaskTable tasks, final Counters counters, final DispatcherJournal journal, final CycleClock clock) {
        this.desired = desired;
        this.tasks = tasks;
        this.counters = counters;
        this.journal = journal;
        this.clock = clock;
        final int n = desired.gpus();
        final Reservation.Target[] targets = new Reservation.Target[n];
        for (int g = 0; g < n; g++) {
            targets[g] = desired.enforcer(g).desired();
        }
        anticipator = new Anticipator(config, scheduler, targets, this);
        publishedVersion = new long[n];
        publishedNs = new long[n];
        isAwaited = new boolean[n];
        isMixed = new boolean[n];
        disabled = new int[n];
        isDrained = new boolean[n];
        drains = new Drains(tasks, n, config.maxContexts());
        desired.onForget(drains::forget);
        toldTask = new int[n];
        Arrays.fill(toldTask, SegmentScheduler.NONE);
        final int decisions = 4 * (config.maxTasks() + n);
        kinds = new int[decisions];
        taskIds = new int[decisions];
        gpus = new int[decisions];
        arg0 = new long[decisions];
        arg1 = new long[decisions];
        arg2 = new long[decisions];
    }

    /**
     * From now on no client is told that its begin is expected, so none touches the GPU outside of its segments: proven
     * bounds rely on that (M9).
     */
    void saysNothing() {
        isSilent = true;
    }

    // ---- settings; journaled by the caller -------------------------------------------------------------------------

    /** Tells what the mechanisms state about their costs, and journals it. */
    void started() {
        for (int g = 0; g < desired.gpus(); g++) {
            final Capabilities can = desired.enforcer(g).mechanism().capabilities();
            isDrained[g] = can.drains();
            anticipator.stateCost(g, can.disableNs(), can.disablePerContextNs());
            journal.anticipationCost(g, can.disableNs(), can.disablePerContextNs());
        }
    }

    void mode(final Anticipate mode) {
        anticipator.setMode(mode);
    }

    void budget(final int ppm) {
        anticipator.setBudget(ppm);
    }

    void wish(final TaskEntry task, final Anticipate wish) {
        anticipator.setWish(task.id, wish, clock.nowNs());
    }

    // ---- tasks and records -----------------------------------------------------------------------------------------

    void open(final TaskEntry task) {
        anticipator.open(task.id, task.gpu(), task.contextId, task.gpuRank(), task.request.periodNs());
    }

    /** The task is closed. Published with the decision that follows. */
    void close(final TaskEntry task) {
        anticipator.close(task.id, clock.nowNs());
    }

    void ranked(final TaskEntry task) {
        anticipator.setRank(task.id, task.gpuRank(), clock.nowNs());
    }

    /**
     * A program says when its next begin will be. The caller settles.
     *
     * @param atNs when, CLOCK_MONOTONIC ns
     */
    void hint(final TaskEntry task, final long atNs) {
        anticipator.hint(task.id, atNs, clock.nowNs());
    }

    /** A segment begins; before what the scheduler decided of it is answered, with which it is published. */
    void begin(final TaskEntry task) {
        pollDrain(task.gpu());   // the reservation ends now
        anticipator.begin(task.id, clock.nowNs());
    }

    /** The same begin, after all that waits for it. */
    void learn(final TaskEntry task, final long beginNs, final long releaseNs) {
        anticipator.learn(task.id, beginNs, releaseNs, clock.nowNs());
    }

    /** A segment ended; after the scheduler was told. Published with its decision. */
    void end(final TaskEntry task) {
        anticipator.end(task.id, clock.nowNs());
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    /**
     * Acts on what is due. The caller settles if there was something.
     *
     * @return how many expected begins were due or overdue
     */
    int poll(final long nowNs) {
        for (int g = 0; g < isDrained.length; g++) {
            pollDrain(g);
        }
        if (anticipator.nextNs() > nowNs) {
            return 0;
        }
        final int due = anticipator.onTimer(nowNs);
        journal.anticipation(Abi.ANTICIPATION_DUE, 0, null, 0, 0, 0);
        return due;
    }

    /** When something is due next, {@link Long#MAX_VALUE} if nothing is. */
    long nextNs() {
        long atNs = anticipator.nextNs();
        for (int g = 0; g < isDrained.length; g++) {
            if (drains.isOpen(g)) {
                atNs = Math.min(atNs, clock.nowNs() + DRAIN_LOOK_NS);
            }
        }
        return atNs;
    }

    // ---- decisions and their enforcement ---------------------------------------------------------------------------

    /**
     * Follows what the scheduler decided: the GPU is reserved only while no real-time segment runs.
     *
     * @return whether the desired state changed, so has to be published
     */
    boolean follow(final int gpu) {
        return anticipator.follow(gpu, clock.nowNs());
    }

    /** Whether the GPU is reserved for an expected begin. */
    boolean isReserved(final int gpu) {
        return anticipator.isReserved(gpu);
    }

    /** The desired state of a GPU was published, if there was something to publish. */
    void published(final int gpu) {
        final long version = desired.disableVersion(gpu);
        if (version != publishedVersion[gpu]) {
            publishedVersion[gpu] = version;
            publishedNs[gpu] = clock.nowNs();
            isMixed[gpu] = isAwaited[gpu];
            isAwaited[gpu] = true;
            disabled[gpu] = 0;
        }
        final int task = anticipator.reservedFor(gpu);
        if (task != toldTask[gpu]) {
            toldTask[gpu] = task;
            tellExpected(gpu);   // after the enforcer: what its client does may take place meanwhile
        }
    }

    /** Its client may have the GPU switch to it before the begin. */
    private void tellExpected(final int gpu) {
        final TaskEntry task = toldTask[gpu] == SegmentScheduler.NONE ? null : tasks.get(toldTask[gpu]);
        if (task != null && !isSilent) {
            task.slot.expected();
        }
    }

    /** An enforcer disabled or enabled a context. */
    void applied(final int gpu, final int contextId, final boolean off, final long atNs) {
        disabled[gpu] += off ? 1 : 0;
        if (isDrained[gpu] && off) {
            drains.disabled(gpu, contextId);
        } else if (isDrained[gpu]) {
            drains.enabled(gpu, contextId, atNs);
        }
    }

    /**
     * The enforcer of a GPU may have come further.
     *
     * @param enforcedVersion read before the results that led to it were taken
     */
    void enforced(final int gpu, final long enforcedVersion) {
        if (!isAwaited[gpu] || enforcedVersion < publishedVersion[gpu]) {
            return;
        }
        isAwaited[gpu] = false;
        final Enforcement enforcer = desired.enforcer(gpu);
        final int n = isMixed[gpu] || enforcer.isIncomplete() ? 0 : disabled[gpu];
        if (isDrained[gpu]) {
            drains.enforced(gpu, n > 0, publishedNs[gpu], enforcer.enforcedNs());
            pollDrain(gpu);
        } else {
            enforced(gpu, n, publishedNs[gpu], enforcer.enforcedNs());
        }
    }

    /** Work in flight is done: only now the contexts are off the GPU. */
    private void pollDrain(final int gpu) {
        if (isDrained[gpu] && drains.poll(gpu, clock.nowNs())) {
            enforced(gpu, drains.contexts(gpu), drains.sinceNs(gpu), drains.doneNs(gpu));
        }
    }

    private void enforced(final int gpu, final int n, final long sinceNs, final long atNs) {
        if (n > 0 || anticipator.isReserved(gpu)) {   // else nothing follows from it
            journal.anticipation(Abi.ANTICIPATION_COST, gpu, null, sinceNs, atNs, n);
            anticipator.enforced(gpu, n, sinceNs, atNs);
            if (anticipator.isReserved(gpu)) {
                tellExpected(gpu);   // again: lower work may have had the GPU in between
            }
        }
    }

    /** Journals what was decided; after the event that led to it. */
    void record() {
        for (int i = 0; i < count; i++) {
            final TaskEntry task = tasks.get(taskIds[i]);
            if (task != null) {
                journal.anticipation(kinds[i], gpus[i], task, arg0[i], arg1[i], arg2[i]);
            }
        }
        count = 0;
    }

    private void decided(final int kind, final int gpu, final int taskId, final long first, final long second,
        final long third) {
        kinds[count] = kind;
        gpus[count] = gpu;
        taskIds[count] = taskId;
        arg0[count] = first;
        arg1[count] = second;
        arg2[count++] = third;
    }

    @Override
    public void onAnticipated(final int gpu, final int taskId, final long expectedNs, final long leadNs,
        final boolean isHint) {
        counters.increment(isHint ? Counter.HINTS_ACTED : Counter.ANTICIPATED);
        tasks.get(taskId).anticipated++;
        decided(Abi.ANTICIPATION_ACTED, gpu, taskId, expectedNs, leadNs, isHint ? 1 : 0);
    }

    @Override
    public void onWasted(final int gpu, final int taskId, final boolean isHint) {
        counters.increment(isHint ? Counter.HINTS_WASTED : Counter.ANTICIPATIONS_WASTED);
        tasks.get(taskId).anticipationsWasted++;
        decided(Abi.ANTICIPATION_WASTED, gpu, taskId, 0, 0, isHint ? 1 : 0);
    }

    @Override
    public void onOverBudget(final int gpu, final int taskId) {
        counters.increment(Counter.ANTICIPATIONS_OVER_BUDGET);
        tasks.get(taskId).anticipationsOverBudget++;
        decided(Abi.ANTICIPATION_OVER_BUDGET, gpu, taskId, 0, 0, 0);
    }

    @Override
    public void onReserved(final int gpu, final int taskId, final long ns) {
        counters.add(Counter.KEPT_FREE_NS, ns);
        final TaskEntry task = tasks.get(taskId);
        if (task != null) {
            task.reservedNs += ns;
        }
        decided(Abi.ANTICIPATION_RESERVED, gpu, taskId, ns, 0, 0);
    }
}
