/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.core.SegmentState;
import dev.gpuseg.ipc.Abi;

/**
 * Best-effort programs whose kernels fill the GPU for longer than the bound on work in flight take turns, where
 * launches are all that can be held. Each has a kernel in flight that nothing cuts: side by side, a real-time segment
 * would wait for all of them, by turns it waits for one. Programs with shorter or smaller kernels are not concerned.
 *
 * <p>A program has its turn for {@value #SLICE_MS} ms of best-effort time, or until its segment ends. The next one is
 * enabled once the work of the one before is done, as its program says, at most {@value #SWITCH_MAX_MS} ms later; a
 * program for which that was not enough is not waited for again, until its work is done when its turn ends.
 * A program that was found to have long kernels is taken to have them for {@value #STAY_S} s: by turns, each of its
 * kernels takes less time than side by side.
 *
 * <p>Which programs those are is said by the programs, so it is no input of the scheduler and not in the journal: this
 * stands between what the scheduler wants and what enforcers are told. Nothing is done while
 * weights, caps or partitions make best-effort work take turns. Dispatcher thread only, allocates nothing per call.
 */
final class LongTurns {
    static final int SLICE_MS = 20;
    static final int SWITCH_MAX_MS = 100;
    static final int STAY_S = 10;
    static final long LOOK_NS = 10_000_000;
    private static final long NS_PER_MS = 1_000_000;
    private static final long SLICE_NS = SLICE_MS * NS_PER_MS;
    private static final long SWITCH_MAX_NS = SWITCH_MAX_MS * NS_PER_MS;
    private static final long STAY_NS = STAY_S * 1000 * NS_PER_MS;
    private static final int NOBODY = 0;

    private final DesiredStates desired;
    private final SegmentScheduler scheduler;
    private final TaskTable tasks;
    private final Anticipation anticipation;
    private final Counters counters;
    /** By context: until when it is taken to have long kernels, 0 = it has none. */
    private final long[] longUntilNs;
    private final boolean[] isHeld;
    /** By context: its work was not done in time after its last turn; nobody waits for it again. */
    private final boolean[] isLate;
    private final boolean[] applies;
    /** By GPU: the contexts with long kernels, in no order. */
    private final int[][] longs;
    private final int[] longCount;
    /** By GPU: whose turn it is, {@link #NOBODY} if none are taken; what is left of it; who is next after a switch. */
    private final int[] holder;
    private final long[] leftNs;
    private final long[] chargedNs;
    private final boolean[] switching;
    private final long[] switchedNs;
    private long lookedNs;

    /**
     * @param desired      where contexts are disabled
     * @param scheduler    what has begun
     * @param tasks        what programs say of their kernels
     * @param anticipation knows when the GPU is kept free, so that no turn passes
     * @param counters     where it is counted
     * @param maxContexts  highest context id
     */
    LongTurns(final DesiredStates desired, final SegmentScheduler scheduler, final TaskTable tasks,
        final Anticipation anticipation, final Counters counters, final int maxContexts) {
        this.desired = desired;
        this.scheduler = scheduler;
        this.tasks = tasks;
        this.anticipation = anticipation;
        this.counters = counters;
        final int gpus = desired.gpus();
        longUntilNs = new long[maxContexts + 1];
        isHeld = new boolean[maxContexts + 1];
        isLate = new boolean[maxContexts + 1];
        applies = new boolean[gpus];
        for (int g = 0; g < gpus; g++) {
            applies[g] = desired.enforcer(g).mechanism().capabilities().drains();
        }
        longs = new int[gpus][maxContexts + 1];
        longCount = new int[gpus];
        holder = new int[gpus];
        leftNs = new long[gpus];
        chargedNs = new long[gpus];
        switching = new boolean[gpus];
        switchedNs = new long[gpus];
        desired.onForget(this::forget);
    }

    /**
     * Takes turns on.
     *
     * @return whether something is to be published
     */
    boolean poll(final long nowNs) {
        boolean changed = false;
        if (nowNs - lookedNs >= LOOK_NS) {
            lookedNs = nowNs;
            changed = look(nowNs);
        }
        for (int g = 0; g < longCount.length; g++) {
            if (longCount[g] > 1 || holder[g] != NOBODY) {
                changed |= take(g, nowNs);
            }
        }
        return changed;
    }

    /** When to be asked again; {@link Long#MAX_VALUE}: with the next event, or heartbeat. */
    long nextNs(final long nowNs) {
        long atNs = Long.MAX_VALUE;
        for (int g = 0; g < holder.length; g++) {
            if (switching[g]) {
                return nowNs;
            }
            if (holder[g] != NOBODY) {
                atNs = Math.min(atNs, nowNs + leftNs[g]);
            }
        }
        return atNs;
    }

    private void forget(final int gpu, final int contextId) {
        longUntilNs[contextId] = 0;
        isHeld[contextId] = false;
        isLate[contextId] = false;
        for (int i = 0; i < longCount[gpu]; i++) {
            if (longs[gpu][i] == contextId) {
                longs[gpu][i] = longs[gpu][--longCount[gpu]];
            }
        }
    }

    /** Which contexts have long kernels. */
    private boolean look(final long nowNs) {
        boolean changed = false;
        for (int id = 1; id <= tasks.highest(); id++) {
            final TaskEntry task = tasks.get(id);
            if (task != null && applies[task.gpu()] && task.slot.kernelClass() == Abi.KERNELS_LONG) {
                if (longUntilNs[task.contextId] == 0) {
                    longs[task.gpu()][longCount[task.gpu()]++] = task.contextId;
                    counters.increment(Counter.LONG_KERNELS);
                }
                longUntilNs[task.contextId] = nowNs + STAY_NS;
            }
        }
        for (int g = 0; g < longCount.length; g++) {
            for (int i = longCount[g] - 1; i >= 0; i--) {
                final int contextId = longs[g][i];
                if (longUntilNs[contextId] - nowNs <= 0) {
                    longUntilNs[contextId] = 0;
                    longs[g][i] = longs[g][--longCount[g]];
                    changed |= set(g, contextId, true);
                }
            }
        }
        return changed;
    }

    private boolean take(final int gpu, final long nowNs) {
        final int next = next(gpu);
        boolean changed = false;
        if (next == NOBODY || !scheduler.mayReserve(gpu)) {   // fewer than two compete, or others decide
            changed = end(gpu);
        } else if (holder[gpu] == NOBODY) {
            changed = start(gpu, next, nowNs);
        } else if (switching[gpu]) {
            if (isOver(gpu, nowNs)) {
                changed = start(gpu, next, nowNs);
            }
        } else if (!competes(holder[gpu])) {
            changed = start(gpu, next, nowNs);
        } else {
            charge(gpu, nowNs);
            if (leftNs[gpu] <= 0) {
                switching[gpu] = true;
                switchedNs[gpu] = nowNs;
                changed = set(gpu, holder[gpu], false);
            } else {
                changed = holdOthers(gpu);
            }
        }
        return changed;
    }

    /** Whether what the holder had in flight is done, or is waited for no longer. */
    private boolean isOver(final int gpu, final long nowNs) {
        final int c = holder[gpu];
        if (!tasks.isInFlight(c)) {
            isLate[c] = false;
            return true;
        }
        isLate[c] |= nowNs - switchedNs[gpu] >= SWITCH_MAX_NS;
        return isLate[c];
    }

    /** Time in which best-effort work has the GPU. */
    private void charge(final int gpu, final long nowNs) {
        if (!scheduler.isRealTime(scheduler.runningTask(gpu)) && !anticipation.isReserved(gpu)) {
            leftNs[gpu] -= nowNs - chargedNs[gpu];
        }
        chargedNs[gpu] = nowNs;
    }

    /** Who competes and comes after the holder by id; {@link #NOBODY} if fewer than two compete. */
    private int next(final int gpu) {
        int count = 0;
        int first = NOBODY;
        int after = NOBODY;
        for (int i = 0; i < longCount[gpu]; i++) {
            final int c = longs[gpu][i];
            if (competes(c)) {
                count++;
                first = first == NOBODY ? c : Math.min(first, c);
                if (c > holder[gpu]) {
                    after = after == NOBODY ? c : Math.min(after, c);
                }
            }
        }
        return count < 2 ? NOBODY : after == NOBODY ? first : after;
    }

    /** Whether a context is of best effort only and has a segment. */
    private boolean competes(final int contextId) {
        boolean begun = false;
        for (int id = 1; id <= tasks.highest(); id++) {
            final TaskEntry task = tasks.get(id);
            if (task != null && task.contextId == contextId) {
                if (task.isRealTime()) {
                    return false;
                }
                begun |= scheduler.state(id) != SegmentState.IDLE;
            }
        }
        return begun;
    }

    private boolean start(final int gpu, final int contextId, final long nowNs) {
        holder[gpu] = contextId;
        leftNs[gpu] = SLICE_NS;
        chargedNs[gpu] = nowNs;
        switching[gpu] = false;
        counters.increment(Counter.LONG_TURNS);
        final boolean changed = holdOthers(gpu);
        return set(gpu, contextId, true) | changed;
    }

    /** Also those that do not compete now: their next segment waits for its turn. */
    private boolean holdOthers(final int gpu) {
        boolean changed = false;
        for (int i = 0; i < longCount[gpu]; i++) {
            final int c = longs[gpu][i];
            if (c != holder[gpu]) {
                changed |= set(gpu, c, false);
            }
        }
        return changed;
    }

    private boolean end(final int gpu) {
        boolean changed = false;
        for (int i = 0; i < longCount[gpu]; i++) {
            changed |= set(gpu, longs[gpu][i], true);
        }
        holder[gpu] = NOBODY;
        switching[gpu] = false;
        return changed;
    }

    private boolean set(final int gpu, final int contextId, final boolean isItsTurn) {
        if (isHeld[contextId] != isItsTurn) {
            return false;
        }
        isHeld[contextId] = !isItsTurn;
        desired.turn(gpu, contextId, isItsTurn);
        return true;
    }
}
