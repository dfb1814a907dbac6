/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.core.SegmentScheduler;
import dev.gpuseg.daemon.enforce.DesiredStates;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.Map;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * Begins that need no driver call, GPU by GPU ({@link GpuTurns},
 * {@code rt-scheduler/docs/adr/0066-turns-and-slices.md}).
 *
 * <p>All is as without turns where the mechanism's slices bound nothing or launches are held, where weights are kept by
 * slices, and under a policy that does not enforce. Where admission proves bounds it says whether turns are taken
 * ({@link #allow}): what it proved by calls runs by calls. Dispatcher thread only, unless it says something else.
 */
final class Turns {
    private final GpuTurns[] gpus;
    private final CycleClock clock;
    private final boolean isPossible;
    private int processesVersion;
    /** When a process came or went. */
    private long changedNs;
    /** W dispatcher, R any thread. */
    private volatile boolean inUse;
    /** By GPU, 1 = yes. W dispatcher, R any thread. */
    private final AtomicIntegerArray asks;

    Turns(final SegmentScheduler scheduler, final DesiredStates desired, final TaskTable tasks,
        final int maxContexts, final CycleClock clock) {
        this.clock = clock;
        gpus = new GpuTurns[desired.gpus()];
        asks = new AtomicIntegerArray(gpus.length);
        boolean obstructed = false;
        for (int g = 0; g < gpus.length; g++) {
            gpus[g] = new GpuTurns(g, scheduler, desired, tasks, maxContexts, clock);
            obstructed |= !obstacle(desired.enforcer(g).mechanism()).isEmpty();
        }
        isPossible = !obstructed;
        desired.onForget((gpu, contextId) -> gpus[gpu].forget(contextId));
    }

    /** Why a mechanism can take no turns, one line; empty if it can. */
    static String obstacle(final Mechanism mechanism) {
        final Capabilities can = mechanism.capabilities();
        return mechanism.slicesBoundWaits() && can.timeslice() && can.level() == Capabilities.INTERRUPT
            && !can.holdsLaunches() ? "" : "mechanism " + mechanism.name() + " has no time slices that bound a wait";
    }

    /**
     * Whether turns may be taken; they may at first. Of effect with the next {@link #refresh} and {@link #follow}: the
     * call that an open segment went without is made then. Slices are given back once no real-time task is open.
     *
     * @param slicesNs of the contexts of real-time tasks by their names, ns; others have theirs by rank
     */
    void allow(final boolean allowed, final Map<String, Long> slicesNs) {
        for (final GpuTurns gpu : gpus) {
            gpu.allow(allowed, slicesNs);
        }
    }

    /** Any thread: whether turns are taken; then processes are to be looked at now and then. */
    boolean isInUse() {
        return inUse;
    }

    /** Any thread: whether it matters how much of a GPU best effort uses; then {@link #busy} is to be told. */
    boolean asksHowBusy(final int gpu) {
        return asks.get(gpu) != 0;
    }

    /**
     * How much of the last second a GPU worked.
     *
     * @param percent 0..100
     * @return whether its best effort shares it together from the next {@link #refresh} on, or no longer does
     */
    boolean busy(final int gpu, final int percent) {
        return gpus[gpu].busy(percent);
    }

    /** Whether best effort shares a GPU together, since its programs leave it idle in turns. */
    boolean isTogether(final int gpu) {
        return gpus[gpu].isTogether();
    }

    /** Looks at who takes part: after each command, since all that changes it is one. */
    void refresh(final ProcessRegistry processes) {
        if (!isPossible) {
            return;
        }
        if (processes.version() != processesVersion) {
            processesVersion = processes.version();
            changedNs = clock.nowNs();
        }
        boolean any = false;
        for (int g = 0; g < gpus.length; g++) {
            any |= gpus[g].refresh(processes);
            asks.lazySet(g, gpus[g].mayBeTogether() ? 1 : 0);
        }
        inUse = any;
    }

    /**
     * A segment begins; before the scheduler is told.
     *
     * @param isReserved the GPU was reserved for it
     * @param beginNs    when, CLOCK_MONOTONIC ns
     */
    void begins(final TaskEntry task, final boolean isReserved, final long beginNs) {
        gpus[task.gpu()].begins(task, isReserved, beginNs, changedNs);
    }

    /** It ended. */
    void ends(final TaskEntry task, final long endNs) {
        gpus[task.gpu()].ends(task, endNs);
    }

    /**
     * Follows what the scheduler decided; published with it.
     *
     * @param isReserved the GPU is reserved
     * @return whether contexts with short slices need not be disabled for the running segment now
     */
    boolean follow(final int gpu, final boolean isReserved) {
        return gpus[gpu].follow(isReserved);
    }

    /** An enforcer disabled or enabled a context. */
    void applied(final int gpu, final int contextId, final boolean off, final long atNs) {
        gpus[gpu].applied(contextId, off, atNs);
    }

    /** Whether {@link #follow} has something to do on some GPU, be it that a turn is over. */
    boolean isDue(final long nowNs) {
        for (final GpuTurns gpu : gpus) {
            if (gpu.isDue(nowNs)) {
                return true;
            }
        }
        return false;
    }

    /** When a turn ends or a call is due, {@link Long#MAX_VALUE} if neither does by itself. */
    long nextNs() {
        long nextNs = Long.MAX_VALUE;
        for (final GpuTurns gpu : gpus) {
            nextNs = Math.min(nextNs, gpu.nextNs());
        }
        return nextNs;
    }
}
