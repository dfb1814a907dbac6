/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.Arrays;

/**
 * The GPUs: contexts that are enabled and have work take turns, each for a time slice. A GPU can also stop for reasons
 * that no scheduler causes; then no context is served and an update in progress waits.
 */
final class Device {
    private final Run run;
    private final SimulatedSet set;
    private final int[][] turn;
    private final int[] turnSize;
    private final long[] workNs;
    private final int[] onGpu;
    private final boolean[] switching;
    private final long[] sinceNs;
    private final long[] sliceEndNs;
    private final int[] lastOnGpu;
    private final boolean[] dirty;
    private final boolean[] stalled;
    private final long[] stallSinceNs;
    private final long[] stallEndNs;
    /** The policy only observes: contexts share the GPU whatever is begun. */
    private boolean sharesAlways;
    private boolean stopsForUpdates;
    /** Contexts have slices of their own; null = all have that of the GPU. */
    private final SlicedGpus sliced;
    private boolean isSliced;
    /** Nothing is written to the hardware: it switches by itself, also to a segment that has the GPU to itself. */
    private boolean switchesItself;

    Device(final Run run) {
        this.run = run;
        set = run.set;
        sliced = new SlicedGpus(run);
        final int gpus = set.gpuCount;
        turn = new int[gpus][];
        for (int g = 0; g < gpus; g++) {
            turn[g] = new int[set.gpuTasks[g].length];
        }
        turnSize = new int[gpus];
        workNs = new long[set.taskCount];
        onGpu = new int[gpus];
        switching = new boolean[gpus];
        sinceNs = new long[gpus];
        sliceEndNs = new long[gpus];
        lastOnGpu = new int[gpus];
        dirty = new boolean[gpus];
        stalled = new boolean[gpus];
        stallSinceNs = new long[gpus];
        stallEndNs = new long[gpus];
    }

    void reset() {
        Arrays.fill(sinceNs, 0);
        Arrays.fill(turnSize, 0);
        Arrays.fill(workNs, 0);
        Arrays.fill(onGpu, -1);
        Arrays.fill(switching, false);
        Arrays.fill(lastOnGpu, -1);
        Arrays.fill(dirty, false);
        Arrays.fill(stalled, false);
        isSliced = false;
        stopsForUpdates = run.options.update() == SimulationOptions.Update.STALL;
    }

    /** In this run contexts have time slices of their own, by task. */
    void slices(final long[] ns) {
        isSliced = true;
        sliced.reset(ns);
    }

    void sharesAlways(final boolean always) {
        sharesAlways = always;
    }

    void switchesItself(final boolean does) {
        switchesItself = does;
    }

    /** Something changed for a GPU. */
    void touch(final int gpu) {
        dirty[gpu] = true;
        sliced.touch(gpu);
    }

    /** The device part of a segment is there. */
    void launch(final int task, final long deviceNs, final int mostBursts) {
        if (isSliced) {
            sliced.launch(task, deviceNs, mostBursts);
            return;
        }
        final int gpu = set.gpuOf[task];
        if (set.realTime[task]) {
            run.newcomers.onLaunch(gpu);
        }
        workNs[task] = deviceNs;
        turn[gpu][turnSize[gpu]] = task;
        turnSize[gpu]++;
        dirty[gpu] = true;
    }

    /** An update is complete. */
    void updated(final int gpu) {
        if (isSliced) {
            return;
        }
        // the switch to whatever comes next is part of epsilon, one in progress included
        lastOnGpu[gpu] = -1;
        if (switching[gpu]) {
            switching[gpu] = false;
            sliceEndNs[gpu] = run.nowNs + set.timesliceNs[gpu];
        }
        dirty[gpu] = true;
    }

    // ---- stops of a GPU that the scheduler does not cause ----

    void startStalls() {
        for (int g = 0; g < set.gpuCount && !isSliced; g++) {   // there new contexts are contexts
            if (set.stallNs[g] > 0) {
                scheduleStall(g, run.random.nextLong(set.stallPeriodNs[g]));
            }
        }
    }

    private void scheduleStall(final int gpu, final long atNs) {
        run.queue.set(run.stallSource + gpu, atNs <= run.options.durationNs() ? atNs : EventQueue.NEVER);
    }

    void onStall(final int gpu) {
        account(gpu);
        dirty[gpu] = true;
        stalled[gpu] = !stalled[gpu];
        if (stalled[gpu]) {
            final long length = run.drawsWorst() ? set.stallNs[gpu] : 1 + run.random.nextLong(set.stallNs[gpu]);
            stallSinceNs[gpu] = run.nowNs;
            stallEndNs[gpu] = Math.addExact(run.nowNs, length);
            run.queue.set(run.stallSource + gpu, stallEndNs[gpu]);
            run.enforcers.delay(gpu, length);
        } else {
            final long late = run.random.nextInt(4) == 0 ? run.random.nextLong(set.stallPeriodNs[gpu]) : 0;
            scheduleStall(gpu, Math.addExact(stallSinceNs[gpu] + set.stallPeriodNs[gpu], late));
        }
    }

    /** How long the GPU still stands still; 0 if it does not. */
    long stallLeftNs(final int gpu) {
        return stalled[gpu] ? stallEndNs[gpu] - run.nowNs : 0;
    }

    // ---- turns ----

    /** Brings the GPUs that something changed for to rest; false if there was none. */
    boolean settle() {
        if (isSliced) {
            return sliced.settle();
        }
        boolean moved = false;
        for (int g = 0; g < dirty.length; g++) {
            if (dirty[g]) {
                dirty[g] = false;
                settle(g);
                moved = true;
            }
        }
        return moved;
    }

    /** Whether the GPU serves those contexts that are enabled. */
    private boolean isServing(final int gpu) {
        return !stalled[gpu] && !run.newcomers.hasGpu(gpu)
            && !(stopsForUpdates && (run.enforcers.isUpdating(gpu) || run.newcomers.isUpdating(gpu)));
    }

    /** Books what a GPU did up to now. */
    void account(final int gpu) {
        if (isSliced) {
            return;
        }
        final int task = onGpu[gpu];
        final long since = sinceNs[gpu];
        sinceNs[gpu] = run.nowNs;
        if (task < 0 || since == run.nowNs) {
            return;
        }
        if (!switching[gpu]) {
            workNs[task] -= run.nowNs - since;
        }
        if (run.trace != null) {
            run.trace.onGpu(gpu, task, switching[gpu] ? TraceSink.Activity.SWITCH : TraceSink.Activity.DEVICE, since,
                run.nowNs);
        }
    }

    private void settle(final int gpu) {
        account(gpu);
        final boolean occupied = onGpu[gpu] >= 0;
        final int current = stillOnGpu(gpu);
        final int[] order = turn[gpu];
        int candidates = 0;
        for (int k = 0; k < turnSize[gpu] && isServing(gpu); k++) {
            if (run.enforcers.isEnabled(order[k])) {
                candidates++;
            }
        }
        if (current >= 0 && goesOn(gpu, current, candidates)) {
            return;
        }
        if (candidates == 0) {
            onGpu[gpu] = -1;
            run.queue.set(run.gpuSource + gpu, EventQueue.NEVER);
            return;
        }
        int next = -1;
        for (int k = 0; k < turnSize[gpu] && next < 0; k++) {
            if (run.enforcers.isEnabled(order[k])) {
                next = order[k];
            }
        }
        switchTo(gpu, next, occupied, candidates);
    }

    /** The task on the GPU, if its work is not done and its context still enabled; else -1. */
    private int stillOnGpu(final int gpu) {
        int current = onGpu[gpu];
        if (current >= 0 && workNs[current] == 0) {
            final int done = current;
            leaveTurn(gpu, done);
            onGpu[gpu] = -1;
            current = -1;
            run.threads.onDeviceDone(done);
        }
        if (current >= 0 && !(isServing(gpu) && run.enforcers.isEnabled(current))) {
            switching[gpu] = false;
            onGpu[gpu] = -1;
            current = -1;
        }
        return current;
    }

    /** Whether the task on the GPU stays there; else it goes to the end of the turn. */
    private boolean goesOn(final int gpu, final int current, final int candidates) {
        final long sliceNs = set.timesliceNs[gpu];
        if (switching[gpu]) {
            if (run.nowNs < sliceEndNs[gpu] - sliceNs) {
                run.queue.set(run.gpuSource + gpu, sliceEndNs[gpu] - sliceNs);
                return true;
            }
            switching[gpu] = false;
        }
        if (sliceEndNs[gpu] < run.nowNs) {
            // it was alone: slices went by without a switch
            final long gone = (run.nowNs - sliceEndNs[gpu] + sliceNs - 1) / sliceNs;
            sliceEndNs[gpu] += gone * sliceNs;
        }
        if (candidates == 1 || run.nowNs < sliceEndNs[gpu]) {
            schedule(gpu, current, candidates);
            return true;
        }
        leaveTurn(gpu, current);
        turn[gpu][turnSize[gpu]] = current;
        turnSize[gpu]++;
        return false;
    }

    private void switchTo(final int gpu, final int next, final boolean occupied, final int candidates) {
        onGpu[gpu] = next;
        // where contexts are disabled, the first switch to a segment that has the GPU to itself is part of epsilon
        // (under a lock, of its measured device part); at a gate, and between contexts that share the GPU, each switch
        // costs theta
        final boolean shared = occupied || sharesAlways || switchesItself;
        final long thetaNs = set.thetaNs[gpu];
        final boolean pays = shared && lastOnGpu[gpu] >= 0 && lastOnGpu[gpu] != next && thetaNs > 0;
        lastOnGpu[gpu] = next;
        switching[gpu] = pays;
        if (pays) {
            sliceEndNs[gpu] = run.nowNs + thetaNs + set.timesliceNs[gpu];
            run.queue.set(run.gpuSource + gpu, run.nowNs + thetaNs);
        } else {
            sliceEndNs[gpu] = run.nowNs + set.timesliceNs[gpu];
            schedule(gpu, next, candidates);
        }
    }

    private void schedule(final int gpu, final int task, final int candidates) {
        final long done = Math.addExact(run.nowNs, workNs[task]);
        run.queue.set(run.gpuSource + gpu, candidates > 1 ? Math.min(done, sliceEndNs[gpu]) : done);
    }

    private void leaveTurn(final int gpu, final int task) {
        final int[] order = turn[gpu];
        int at = 0;
        while (order[at] != task) {
            at++;
        }
        turnSize[gpu]--;
        System.arraycopy(order, at + 1, order, at, turnSize[gpu] - at);
    }

    void finish() {
        if (isSliced) {
            sliced.finish();
            return;
        }
        for (int g = 0; g < onGpu.length; g++) {
            account(g);
        }
    }
}
