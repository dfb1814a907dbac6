/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.PlatformLimits;
import java.util.Arrays;

/**
 * GPUs whose contexts have time slices of their own, while best effort takes turns and no begin waits for a driver call
 * ({@code analysis/docs/turns.md}). Who has the next turn is chosen against the tasks, at random or for one of them
 * that is to wait long, among all that hypothesis U2 leaves: in a wait of a task, each other context has one turn, and
 * one of them one more. Best effort always has work, a new context for its whole delay. Calls that disable or enable
 * others take time from whoever is served, at most as often as U6 and U3 say.
 */
final class SlicedGpus {
    private static final int NOBODY = -1;
    private static final int DRAWS = 3;
    private static final int CALLS_FOR_NEW = 2;

    private final Run run;
    private final SimulatedSet set;
    private final One[] ofGpu;
    /** By task. */
    private final long[] sliceNs;
    private final long[] burstNs;
    private final long[] laterNs;
    private final int[] bursts;
    private final int[] callsLeft;
    private final boolean[] ready;

    SlicedGpus(final Run run) {
        this.run = run;
        set = run.set;
        sliceNs = new long[set.taskCount];
        burstNs = new long[set.taskCount];
        laterNs = new long[set.taskCount];
        bursts = new int[set.taskCount];
        callsLeft = new int[set.taskCount];
        ready = new boolean[set.taskCount];
        ofGpu = new One[set.gpuCount];
        for (int g = 0; g < ofGpu.length; g++) {
            ofGpu[g] = new One(g);
        }
    }

    void reset(final long[] slices) {
        System.arraycopy(slices, 0, sliceNs, 0, sliceNs.length);
        Arrays.fill(ready, false);
        for (final One one : ofGpu) {
            one.reset();
        }
    }

    /** The device part of a segment is there: in as many bursts as it may have, or in fewer. */
    void launch(final int task, final long deviceNs, final int mostBursts) {
        final int most = (int) Math.min(mostBursts, deviceNs);
        bursts[task] = run.drawsWorst() ? most : 1 + run.random.nextInt(most);
        laterNs[task] = deviceNs;
        callsLeft[task] = Math.max(0, 2 * set.limits.turns().contexts() - ofGpu[set.gpuOf[task]].callsInProgress());
        nextBurst(task);
        ofGpu[set.gpuOf[task]].dirty = true;
    }

    private void nextBurst(final int task) {
        bursts[task]--;
        // each of the later ones needs a nanosecond
        final long most = laterNs[task] - bursts[task];
        burstNs[task] = bursts[task] == 0 ? most : 1 + run.random.nextLong(most);
        laterNs[task] -= burstNs[task];
        ready[task] = true;
        ofGpu[set.gpuOf[task]].becomesReady(task);
    }

    void touch(final int gpu) {
        ofGpu[gpu].dirty = true;
    }

    /** Brings the GPUs that something changed for to rest; false if there was none. */
    boolean settle() {
        boolean moved = false;
        for (final One one : ofGpu) {
            if (one.dirty) {
                one.dirty = false;
                one.settle();
                moved = true;
            }
        }
        return moved;
    }

    void finish() {
        for (final One one : ofGpu) {
            one.trace(run.nowNs);
        }
    }

    /** One GPU. Its contexts: real-time and best-effort tasks of the set, further best effort, and the newcomer. */
    private final class One {
        private final int gpu;
        private final int[] tasks;
        private final int contexts;
        private final int newcomer;
        private boolean dirty;
        private int current;
        private int last;
        private long turnEndNs;
        private long progressFromNs;
        private long sinceNs;
        /** By waiting task, then context: turns since it waits. */
        private final int[][] turns;
        private final boolean[] hadMore;
        private final boolean[] waits;
        private int callsOfTurn;
        private int victim;
        private boolean directed;
        private long bornNs;
        /** Calls for the new context that are still to come. */
        private int bornCalls;

        One(final int gpu) {
            this.gpu = gpu;
            tasks = set.gpuTasks[gpu];
            final int best = set.limits.turns() == null ? 0 : set.limits.turns().contexts();
            newcomer = tasks.length + best;
            contexts = newcomer + 1;
            turns = new int[tasks.length][contexts];
            hadMore = new boolean[tasks.length];
            waits = new boolean[tasks.length];
        }

        void reset() {
            dirty = false;
            current = NOBODY;
            last = NOBODY;
            Arrays.fill(waits, false);
            victim = NOBODY;
            for (int at = 0, seen = 0; at < tasks.length; at++) {
                if (set.realTime[tasks[at]] && run.random.nextInt(++seen) == 0) {
                    victim = at;
                }
            }
            directed = run.random.nextInt(DRAWS) != 0;
            bornCalls = CALLS_FOR_NEW;
            bornNs = set.limits.newcomerNs() == 0 ? EventQueue.NEVER
                : run.random.nextLong(set.limits.newcomerPeriodNs());
            run.queue.set(run.gpuSource + gpu, EventQueue.NEVER);
        }

        private int indexOf(final int task) {
            int at = 0;
            while (tasks[at] != task) {
                at++;
            }
            return at;
        }

        void becomesReady(final int task) {
            startsWait(indexOf(task));
        }

        /** What best effort waits for bounds nothing. */
        private void startsWait(final int at) {
            if (!set.realTime[tasks[at]]) {
                return;
            }
            waits[at] = true;
            hadMore[at] = false;
            Arrays.fill(turns[at], 0);
            if (current != NOBODY && current != at) {
                turns[at][current] = 1;   // the one in progress counts
            }
        }

        /** Calls of the turn in progress that can still take time. */
        int callsInProgress() {
            return current != NOBODY && run.nowNs < progressFromNs ? callsOfTurn : 0;
        }

        private boolean isReady(final int context) {
            return context < tasks.length ? ready[tasks[context]] : context < newcomer || isNew();
        }

        /** Whether there is a new context now. */
        private boolean isNew() {
            final PlatformLimits limits = set.limits;
            while (bornNs != EventQueue.NEVER && bornNs + limits.newcomerNs() <= run.nowNs) {
                bornCalls = CALLS_FOR_NEW;
                bornNs += limits.newcomerPeriodNs() + (run.random.nextBoolean() ? 0
                    : run.random.nextLong(limits.newcomerPeriodNs()));
            }
            return bornNs <= run.nowNs;
        }

        private long sliceOf(final int context) {
            return context < tasks.length ? sliceNs[tasks[context]]
                : context < newcomer ? set.limits.turns().sliceNs() : set.timesliceNs[gpu];
        }

        /** Whether no wait forbids a turn of the context. */
        private boolean mayTurn(final int context) {
            for (int at = 0; at < tasks.length; at++) {
                if (waits[at] && at != context && (turns[at][context] >= 1 ? hadMore[at]
                    : isBestEffort(context) && met(at) >= set.limits.turns().contexts())) {
                    return false;
                }
            }
            return true;
        }

        private boolean isBestEffort(final int context) {
            return context < tasks.length ? !set.realTime[tasks[context]] : context < newcomer;
        }

        /** How many best-effort contexts had a turn in a wait. */
        private int met(final int at) {
            int met = 0;
            for (int c = 0; c < newcomer; c++) {
                met += isBestEffort(c) && turns[at][c] > 0 ? 1 : 0;
            }
            return met;
        }

        void settle() {
            if (current != NOBODY && run.nowNs >= turnEndNs) {
                endTurn();
            }
            boolean any = false;
            for (int at = 0; at < tasks.length && !any; at++) {
                any = ready[tasks[at]];
            }
            if (current == NOBODY && any) {
                give(choose());
            }
            run.queue.set(run.gpuSource + gpu, current == NOBODY ? EventQueue.NEVER : turnEndNs);
        }

        private void endTurn() {
            trace(run.nowNs);
            final int context = current;
            current = NOBODY;
            if (context >= tasks.length) {
                return;
            }
            final int task = tasks[context];
            burstNs[task] -= Math.max(0, turnEndNs - progressFromNs);
            if (burstNs[task] > 0) {
                startsWait(context);   // unless it goes on: then it has waited for nothing
            } else if (bursts[task] > 0) {
                nextBurst(task);
            } else {
                ready[task] = false;
                waits[context] = false;
                run.threads.onDeviceDone(task);
            }
        }

        /** One of those that may have the next turn. */
        private int choose() {
            final boolean against = directed && run.random.nextInt(8) != 0;
            int chosen = NOBODY;
            long longest = 0;
            int seen = 0;
            for (int c = 0; c < contexts; c++) {
                if (!isReady(c) || !mayTurn(c)) {
                    continue;
                }
                final long turn = c == victim && against ? 0 : against ? turnOf(c) : 1;
                if (chosen == NOBODY || turn > longest) {
                    seen = 1;
                    chosen = c;
                    longest = turn;
                } else if (turn == longest && run.random.nextInt(++seen) == 0) {
                    chosen = c;
                }
            }
            return chosen;
        }

        private long turnOf(final int context) {
            return context < tasks.length ? Math.min(sliceNs[tasks[context]], burstNs[tasks[context]])
                : sliceOf(context);
        }

        private void give(final int context) {
            final boolean switches = context != last;
            for (int at = 0; at < tasks.length; at++) {
                if (waits[at] && at != context) {
                    hadMore[at] |= turns[at][context] >= 1;
                    turns[at][context]++;
                }
            }
            final boolean worst = run.drawsWorst();
            final long theta = !switches ? 0 : worst ? set.thetaNs[gpu] : run.random.nextLong(set.thetaNs[gpu] + 1);
            final long slice = sliceOf(context);
            // who had the GPU last goes on in what is left of its slice, which may be nothing but a nanosecond
            final long whole = switches ? slice : 1 + run.random.nextLong(slice);
            final long calls = calls() + callsForNew(theta);
            current = context;
            last = context;
            sinceNs = run.nowNs;
            progressFromNs = run.nowNs + theta + calls;
            if (context < tasks.length) {
                waits[context] = false;
                turnEndNs = Math.max(progressFromNs, Math.min(progressFromNs + burstNs[tasks[context]],
                    run.nowNs + theta + whole));
            } else {
                turnEndNs = progressFromNs + (worst ? slice : 1 + run.random.nextLong(slice));
                if (context == newcomer) {
                    turnEndNs = Math.min(turnEndNs, Math.max(run.nowNs + 1, bornNs + set.limits.newcomerNs()));
                }
            }
        }

        /** What calls for the new context take in this turn, while it is new. */
        private long callsForNew(final long switchNs) {
            final long theta = set.thetaNs[gpu];
            final long most = (2L * set.limits.turns().contexts() + bornCalls) * theta;
            if (bornCalls == 0 || !isNew() || run.nowNs + switchNs + most > bornNs + set.limits.newcomerNs()
                || run.random.nextBoolean()) {
                return 0;
            }
            final int made = run.drawsWorst() ? bornCalls : run.random.nextInt(bornCalls + 1);
            bornCalls -= made;
            return made * theta;
        }

        /** What calls for others take in this turn: each counts in every window that is open. */
        private long calls() {
            int most = Integer.MAX_VALUE;
            for (final int task : tasks) {
                if (ready[task] && set.realTime[task]) {
                    most = Math.min(most, callsLeft[task]);
                }
            }
            callsOfTurn = 0;
            if (most == 0 || most == Integer.MAX_VALUE || run.random.nextBoolean()) {
                return 0;
            }
            final int made = run.drawsWorst() ? most : run.random.nextInt(most + 1);
            for (final int task : tasks) {
                callsLeft[task] -= ready[task] ? made : 0;
            }
            callsOfTurn = made;
            return made * (run.drawsWorst() ? set.thetaNs[gpu] : run.random.nextLong(set.thetaNs[gpu] + 1));
        }

        void trace(final long nowNs) {
            if (run.trace == null || current == NOBODY || current >= tasks.length) {
                return;
            }
            final long from = Math.min(progressFromNs, nowNs);
            if (from > sinceNs) {
                run.trace.onGpu(gpu, tasks[current], TraceSink.Activity.SWITCH, sinceNs, from);
            }
            if (nowNs > from) {
                run.trace.onGpu(gpu, tasks[current], TraceSink.Activity.DEVICE, from, nowNs);
            }
        }
    }
}
