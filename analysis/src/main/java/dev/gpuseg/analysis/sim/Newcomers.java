/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * New contexts of processes that no scheduler knows. Each works on its GPU from its birth on, alone or in turns with
 * the contexts that are enabled, until an update disables it that no change of the holder starts. That update waits for
 * the one in progress, and the next one of the scheduler waits for it. From birth to the end of the update it takes at
 * most the declared delay (a context that cannot be disabled by then leaves), and births of one GPU are at least the
 * declared period apart. Some are born at a random time, some with the next window, some with its device part.
 *
 * <p>This is what N1 of {@code analysis/docs/limits.md} says of them, not what the bounds count for them: stops. At a
 * gate, where nothing is disabled, they leave.
 */
final class Newcomers {
    private static final byte UNBORN = 0;
    /** Its period is over: it comes with the next begin, or the next device part. */
    private static final byte WITH_BEGIN = 1;
    private static final byte WITH_DEVICE_PART = 2;
    private static final byte WORKS = 3;
    /** It is to be disabled, and an update of the scheduler is in progress. */
    private static final byte WAITS = 4;
    private static final byte IS_DISABLED = 5;
    private static final long SALT = 0x4E43L;

    private final Run run;
    private final SimulatedSet set;
    private final byte[] state;
    private final long[] bornNs;
    private final long[] endNs;
    private final long[] costNs;
    private final long[] nextNs;
    /** End of the turn in progress; never, where it does not share. */
    private final long[] turnEndNs;
    private final boolean[] hasTurn;
    /** Choices of their own: the tasks of a run do not depend on them. */
    private SplittableRandom random;
    private boolean disables;

    Newcomers(final Run run) {
        this.run = run;
        set = run.set;
        final int gpus = set.gpuCount;
        state = new byte[gpus];
        bornNs = new long[gpus];
        endNs = new long[gpus];
        costNs = new long[gpus];
        nextNs = new long[gpus];
        turnEndNs = new long[gpus];
        hasTurn = new boolean[gpus];
    }

    void reset() {
        Arrays.fill(state, UNBORN);
        Arrays.fill(hasTurn, false);
        Arrays.fill(turnEndNs, EventQueue.NEVER);
    }

    /** Begins a run. {@code mayDisable}: the scheduler disables contexts. */
    void start(final boolean mayDisable) {
        disables = mayDisable;
        if (set.newcomerNs == 0) {
            return;
        }
        random = new SplittableRandom(run.options.seed() ^ SALT);
        for (int g = 0; g < set.gpuCount; g++) {
            schedule(g, random.nextLong(set.newcomerPeriodNs));
        }
    }

    /** Whether the GPU works for a new context alone at this time. */
    boolean hasGpu(final int gpu) {
        return state[gpu] >= WORKS && hasTurn[gpu];
    }

    /** Whether the update is in progress that disables one. */
    boolean isUpdating(final int gpu) {
        return state[gpu] == IS_DISABLED;
    }

    /** A real-time window begins. */
    void onBegin(final int gpu) {
        if (state[gpu] == WITH_BEGIN) {
            comes(gpu);
        }
    }

    /** The device part of a real-time window is there. */
    void onLaunch(final int gpu) {
        if (state[gpu] == WITH_DEVICE_PART) {
            comes(gpu);
        }
    }

    /** An update of the scheduler is complete; nothing of the next one has started. */
    void onUpdated(final int gpu) {
        if (state[gpu] == WAITS) {
            startUpdate(gpu);
        }
    }

    void onEvent(final int gpu) {
        run.device.account(gpu);
        run.device.touch(gpu);
        if (state[gpu] == UNBORN) {
            final int kind = random.nextInt(3);
            if (kind == 0) {
                comes(gpu);
            } else {
                state[gpu] = kind == 1 ? WITH_BEGIN : WITH_DEVICE_PART;
            }
            return;
        }
        if (turnEndNs[gpu] == run.nowNs) {
            hasTurn[gpu] = !hasTurn[gpu];
            turnEndNs[gpu] = Math.addExact(run.nowNs, set.timesliceNs[gpu]);
        }
        if (nextNs[gpu] > run.nowNs) {
            queue(gpu);
        } else if (state[gpu] == WORKS && run.nowNs < endNs[gpu]) {
            if (run.enforcers.isUpdating(gpu)) {
                state[gpu] = WAITS;
                nextNs[gpu] = endNs[gpu];
                queue(gpu);
            } else {
                startUpdate(gpu);
            }
        } else {
            leaves(gpu);
        }
    }

    private void schedule(final int gpu, final long atNs) {
        nextNs[gpu] = atNs <= run.options.durationNs() ? atNs : EventQueue.NEVER;
        turnEndNs[gpu] = EventQueue.NEVER;
        queue(gpu);
    }

    private void queue(final int gpu) {
        run.queue.set(run.newcomerSource + gpu, Math.min(nextNs[gpu], turnEndNs[gpu]));
    }

    private boolean isWorst() {
        return run.options.execution() == SimulationOptions.Execution.WORST || random.nextInt(4) == 0;
    }

    private void comes(final int gpu) {
        run.device.account(gpu);
        run.device.touch(gpu);
        final long lengthNs = isWorst() ? set.newcomerNs : 1 + random.nextLong(set.newcomerNs);
        final long epsilonNs = !disables ? 0 : isWorst() ? set.epsilonNs[gpu]
            : random.nextLong(set.epsilonNs[gpu] + 1);
        bornNs[gpu] = run.nowNs;
        endNs[gpu] = Math.addExact(run.nowNs, lengthNs);
        costNs[gpu] = Math.min(lengthNs, epsilonNs);
        state[gpu] = WORKS;
        hasTurn[gpu] = true;
        turnEndNs[gpu] = run.options.update() == SimulationOptions.Update.SHARE
            ? Math.addExact(run.nowNs, set.timesliceNs[gpu]) : EventQueue.NEVER;
        nextNs[gpu] = endNs[gpu] - costNs[gpu];
        if (nextNs[gpu] == run.nowNs && !run.enforcers.isUpdating(gpu)) {
            startUpdate(gpu);
        } else {
            queue(gpu);
        }
    }

    private void startUpdate(final int gpu) {
        state[gpu] = IS_DISABLED;
        endNs[gpu] = Math.min(endNs[gpu], Math.addExact(run.nowNs, costNs[gpu]));
        nextNs[gpu] = endNs[gpu];
        queue(gpu);
    }

    private void leaves(final int gpu) {
        final boolean updated = state[gpu] == IS_DISABLED;
        state[gpu] = UNBORN;
        hasTurn[gpu] = false;
        final long lateNs = random.nextInt(4) == 0 ? random.nextLong(set.newcomerPeriodNs) : 0;
        schedule(gpu, Math.max(run.nowNs, Math.addExact(bornNs[gpu] + set.newcomerPeriodNs, lateNs)));
        if (updated) {
            run.device.updated(gpu);
            run.enforcers.enforce(gpu);
        }
    }
}
