/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.BestEffortFill;
import dev.gpuseg.core.BestEffortTurns;
import dev.gpuseg.core.CallChoice;
import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.Sharing;
import dev.gpuseg.daemon.enforce.DesiredStates;
import java.util.Map;
import java.util.function.Consumer;

/**
 * {@link Turns} of one GPU: while real-time tasks are open on it, its best-effort contexts take turns
 * ({@link BestEffortTurns}) and have short time slices, and the contexts of the highest real-time tasks have long ones,
 * so that a begin that waits for no driver call meets one context that yields within a switch
 * ({@code rt-scheduler/docs/adr/0066-turns-and-slices.md}). Contexts of lower real-time tasks have short ones, too, or
 * all real-time contexts those by which admission proves their bounds.
 *
 * <p>A process takes part if it has channels on the GPU, used CPU time lately ({@link ProcessEntry#isIdle}) and is no
 * longer young: one that loads its modules would have a turn without work. Those that do not take part stay enabled
 * with their short slice, and are disabled by the scheduler as ever. One that works on several GPUs takes part on none:
 * it would wait through the turns of all. While there is one, segments get the call.
 *
 * <p>Programs that leave the GPU idle in their turns ({@link BestEffortFill}) share it all together, with slices of
 * {@value #TOGETHER_NS} ns, where each open real-time task has declared a deadline that bears it: a begin then waits
 * for all that have work. Never where bounds are proven: they are for one that has the turn.
 *
 * <p>What a process with a long slice launches outside of its segments has nearly the whole GPU beside best effort. So
 * a user whose share of the GPU is limited gets none: he would keep more than that by not beginning.
 *
 * <p>Whether a begun segment of a highest task needs the call that disables best effort, or the lower task that has the
 * GPU, is what {@link CallChoice} found. Shortly after a process came or went it gets it in any case, but where it is
 * over before the call is; so do others.
 *
 * <p>Dispatcher thread only.
 */
final class GpuTurns {
    /** Of best-effort contexts. */
    static final long SHORT_NS = BestEffortTurns.SHORT_SLICE_NS;
    /** Of the contexts of the highest real-time tasks: longer than any segment. */
    static final long LONG_NS = BestEffortTurns.LONG_SLICE_NS;
    /** Of the contexts of lower real-time tasks: longer than best effort, beside which they begin. Source: ADR 66. */
    static final long LOWER_NS = 250_000;
    /** Of best-effort contexts that share the GPU together: shorter ones leave little between switches. */
    static final long TOGETHER_NS = 500_000;
    /** What a begin waits for each of those at most: slice and switch. Source: ADR 66, rounded up. */
    static final long WAIT_NS = 1_000_000;
    /** Of what a deadline leaves besides the budget one part may be such waits. */
    static final int PARTS = 4;
    /** A process that is known for less takes no part. */
    static final long YOUNG_NS = 2_000_000_000;
    /** So long after a process came or went segments get the call: contexts that are made or freed let others in. */
    static final long UNREST_NS = 1_000_000_000;
    /** A call takes so long then, which disturbs shorter segments and helps none of them. Source: ADR 66. */
    static final long CALL_NS = 1_000_000;
    /** Of the shortest segment, one part is forgotten with each. */
    private static final int FORGOTTEN_SHIFT = 3;

    private final int gpu;
    private final SegmentScheduler scheduler;
    private final DesiredStates desired;
    private final CycleClock clock;
    private final BestEffortTurns turns;
    private final Consumer<ProcessEntry> findHighest = this::findHighest;
    private final Consumer<ProcessEntry> refreshOne = this::refresh;
    private final TaskTable tasks;
    private final BestEffortFill fill = new BestEffortFill();
    private final BestEffortUse use = new BestEffortUse();
    private boolean isOff;
    /** Admission says whether turns are taken: what it proves is of turns. */
    private boolean isProven;
    /** Who would take turns: a count, and a sum by which two sets differ. */
    private int members;
    private long membersSum;
    private boolean isTogether;
    /** By the name of a real-time task. */
    private Map<String, Long> slicesNs = Map.of();
    /** Turns ended while a real-time task is open: slices stay, since giving them back would delay disables. */
    private boolean keepsSlices;
    private int highest;
    /** When best effort is disabled for the segment that goes without so far; {@link Long#MAX_VALUE} = it need not. */
    private long callDueNs = Long.MAX_VALUE;
    private boolean isStale;
    /** A best-effort process works on this GPU and on others. */
    private boolean isShared;

    GpuTurns(final int gpu, final SegmentScheduler scheduler, final DesiredStates desired, final TaskTable tasks,
        final int maxContexts, final CycleClock clock) {
        this.gpu = gpu;
        this.scheduler = scheduler;
        this.tasks = tasks;
        this.desired = desired;
        this.clock = clock;
        turns = new BestEffortTurns(maxContexts + 1, (contextId, rests) -> desired.rest(gpu, contextId, rests));
    }

    /** A context is gone. */
    void forget(final int contextId) {
        turns.takesPart(contextId, false);
    }

    /**
     * Whether turns may be taken; they may at first. Of effect with the next {@link #refresh} and {@link #follow}: the
     * call that an open segment went without is made then. Slices are given back once no real-time task is open.
     *
     * @param ofTasksNs slices of the contexts of real-time tasks by their names, ns; others have theirs by rank
     */
    void allow(final boolean allowed, final Map<String, Long> ofTasksNs) {
        isStale |= isOff == allowed;
        isOff = !allowed;
        isProven = true;
        slicesNs = ofTasksNs;
    }

    /** Looks at who takes part; whether turns are taken then. */
    boolean refresh(final ProcessRegistry processes) {
        highest = 0;
        if (scheduler.policy().enforces() && scheduler.sharing() == Sharing.TURNS) {
            processes.forEach(findHighest);
        }
        keepsSlices = isOff && highest > 0;
        highest = isOff ? 0 : highest;
        final int before = members;
        final long sumBefore = membersSum;
        refreshAll(processes);
        if (members != before || membersSum != sumBefore) {
            fill.changed();
        }
        if (isTogether != (mayBeTogether() && fill.isTogether())) {   // rare, so that mostly each is looked at once
            isTogether = !isTogether;
            isStale = true;
            tasks.tryCallsAnew(gpu);
            refreshAll(processes);
        }
        return highest > 0;
    }

    private void refreshAll(final ProcessRegistry processes) {
        isShared = false;
        members = 0;
        membersSum = 0;
        processes.forEach(refreshOne);
    }

    /** Whether it matters how much of the GPU best effort uses. */
    boolean mayBeTogether() {
        return highest > 0 && !isProven && members > 1 && tasks.leastSlackNs(gpu) >= PARTS * WAIT_NS * members;
    }

    boolean isTogether() {
        return isTogether;
    }

    /**
     * The device says how much it worked.
     *
     * @param percent 0..100, of about the last second
     * @return whether best effort shares it together from the next {@link #refresh} on, or no longer does
     */
    boolean busy(final int percent) {
        final long nowNs = clock.nowNs();
        final int permille = use.look(percent, nowNs);
        return permille != BestEffortUse.UNKNOWN && mayBeTogether() && fill.look(permille, nowNs);
    }

    private void findHighest(final ProcessEntry process) {
        highest = Math.max(highest, scheduler.highestPriority(process.contexts[gpu]));
    }

    private void refresh(final ProcessEntry process) {
        final int contextId = process.contexts[gpu];
        final int priority = scheduler.highestPriority(contextId);
        final boolean isBestEffort = highest > 0 && priority == 0 && scheduler.isSteerable(contextId);
        final boolean works = isBestEffort && !process.isIdle && units(process, gpu) != 0;
        final boolean onSeveral = works && worksElsewhere(process);
        isShared |= onSeveral;
        final boolean takesPart = works && !onSeveral && clock.nowNs() - process.sinceNs >= YOUNG_NS;
        members += takesPart ? 1 : 0;
        membersSum += takesPart ? contextId : 0;
        isStale |= turns.takesPart(contextId, takesPart && !isTogether);
        final boolean isLower = priority > 0 && priority < highest && scheduler.isSteerable(contextId);
        if (keepsSlices) {
            return;
        }
        final long ofProofNs = highest > 0 && priority > 0 ? tasks.sliceNs(contextId, slicesNs) : 0;
        desired.turnSlice(gpu, contextId, isBestEffort ? isTogether ? TOGETHER_NS : SHORT_NS : ofProofNs > 0 ? ofProofNs
            : isLower ? LOWER_NS : isHighest(contextId) ? LONG_NS : 0, isBestEffort || isLower);
    }

    /** It has a long slice. */
    private boolean isHighest(final int contextId) {
        return highest > 0 && scheduler.highestPriority(contextId) == highest && !scheduler.hasLimitedShare(contextId);
    }

    private boolean worksElsewhere(final ProcessEntry process) {
        for (int g = 0; g < desired.gpus(); g++) {
            if (g != gpu && units(process, g) > 0) {
                return true;
            }
        }
        return false;
    }

    private int units(final ProcessEntry process, final int on) {
        return desired.enforcer(on).mechanism().units(process.refs[on]);
    }

    /**
     * A segment begins; before the scheduler is told.
     *
     * @param isReserved the GPU was reserved for it
     * @param beginNs    when, CLOCK_MONOTONIC ns
     * @param changedNs  when a process came or went
     */
    void begins(final TaskEntry task, final boolean isReserved, final long beginNs, final long changedNs) {
        task.patienceNs = 0;
        task.beganNs = beginNs;
        task.isTrial = false;
        task.meetsLower = isHighest(task.contextId) && preemptsLower(task);
        if (highest > 0 && task.optimistic && !isReserved && scheduler.highestPriority(task.contextId) == highest
            && (task.meetsLower || !desired.hasDisabled(gpu) && isMetOn() && !isShared)) {
            task.isTrial = beginNs - changedNs >= UNREST_NS;
            task.patienceNs = task.isTrial ? task.calls.patienceNs() : task.shortestNs < CALL_NS ? 2 * CALL_NS : 0;
            task.preemptionsBefore = task.preemptions;
        }
    }

    /** Best effort is on the GPU with short slices, one of them or all. */
    private boolean isMetOn() {
        return turns.holder() >= 0 || isTogether;
    }

    /** A task of a lower context has the GPU, and that context a short slice. */
    private boolean preemptsLower(final TaskEntry task) {
        final int running = scheduler.runningTask(gpu);
        final TaskEntry met = running == SegmentScheduler.NONE ? null : tasks.get(running);
        return met != null && scheduler.isRealTime(running) && scheduler.isSteerable(met.contextId)
            && scheduler.highestPriority(met.contextId) < task.gpuRank();
    }

    /** It ended. */
    void ends(final TaskEntry task, final long endNs) {
        final long tookNs = endNs - task.beganNs;
        if (task.isTrial && (task.meetsLower || isMetOn())
            && task.preemptions == task.preemptionsBefore) {
            task.calls.ended(task.patienceNs, tookNs);
        }
        task.isTrial = false;
        task.shortestNs = Math.min(task.shortestNs + (task.shortestNs >> FORGOTTEN_SHIFT), tookNs);
    }

    /**
     * Follows what the scheduler decided; published with it.
     *
     * @param isReserved the GPU is reserved
     * @return whether contexts with short slices need not be disabled for the running segment now
     */
    boolean follow(final boolean isReserved) {
        if (highest == 0 && !isStale) {
            return false;
        }
        isStale = false;
        final long nowNs = clock.nowNs();
        final boolean isTaken = isReserved || desired.hasDisabled(gpu);
        turns.decide(isTaken, nowNs);
        use.follow(isRealTimeRunning(), isTaken, nowNs);
        if (highest == 0) {
            callDueNs = Long.MAX_VALUE;
            return false;
        }
        final int running = scheduler.runningTask(gpu);
        final TaskEntry task = running == SegmentScheduler.NONE || isReserved ? null : tasks.get(running);
        final long dueNs = task == null || task.patienceNs == 0 ? 0
            : task.beganNs + task.patienceNs;
        callDueNs = dueNs > nowNs ? dueNs : Long.MAX_VALUE;
        return dueNs > nowNs;
    }

    private boolean isRealTimeRunning() {
        final int running = scheduler.runningTask(gpu);
        return running != SegmentScheduler.NONE && scheduler.isRealTime(running);
    }

    /** An enforcer disabled or enabled a context. */
    void applied(final int contextId, final boolean off, final long atNs) {
        turns.applied(contextId, !off, atNs);
    }

    /** Whether {@link #follow} has something to do, be it that a turn is over. */
    boolean isDue(final long nowNs) {
        return isStale || nextNs() <= nowNs;
    }

    /** When a turn ends or a call is due, {@link Long#MAX_VALUE} if neither does by itself. */
    long nextNs() {
        return Math.min(turns.nextNs(), callDueNs);
    }
}
