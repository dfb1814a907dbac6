/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.Arrays;

/** When jobs arrive, and which of them wait for the one before them. */
final class Arrivals {
    private final Run run;
    private final long[] nextArrivalNs;
    private final long[][] backlog;
    private final int[] backlogHead;
    private final int[] backlogSize;

    Arrivals(final Run run) {
        this.run = run;
        final int n = run.set.taskCount;
        nextArrivalNs = new long[n];
        backlog = new long[n][2];
        backlogHead = new int[n];
        backlogSize = new int[n];
    }

    void reset() {
        Arrays.fill(backlogHead, 0);
        Arrays.fill(backlogSize, 0);
    }

    /** The first arrival of a task whose set does not say when it is. */
    long drawFirst(final int task) {
        return run.options.offsets() == SimulationOptions.Offsets.SYNCHRONOUS ? 0
            : run.random.nextLong(run.set.periodNs[task]);
    }

    /** A job arrives at this time, and is released some jitter later. */
    void schedule(final int task, final long atNs) {
        nextArrivalNs[task] = atNs;
        if (atNs >= run.options.durationNs()) {
            return;
        }
        run.queue.set(run.taskSource + task, Math.addExact(atNs, late(run.set.jitterNs[task])));
    }

    /** How much later than its arrival a job is released. */
    private long late(final long jitterNs) {
        if (jitterNs == 0 || run.options.jitter() != SimulationOptions.Jitter.RANDOM) {
            return 0;
        }
        final int kind = run.random.nextInt(3);
        return kind == 0 ? 0 : kind == 1 ? jitterNs : run.random.nextLong(jitterNs + 1);
    }

    void onRelease(final int task) {
        run.events++;
        run.observations.jobs[task]++;
        final long arrival = nextArrivalNs[task];
        if (run.threads.isIdle(task)) {
            run.threads.startJob(task, arrival);
        } else {
            push(task, arrival);
        }
        if (run.chains != null && run.chains.isReleasedByEvent(task)) {
            return;
        }
        final long period = run.set.periodNs[task];
        long gap = period;
        if (run.set.maxPeriodNs[task] > 0) {
            gap = gapUpTo(period, run.set.maxPeriodNs[task]);
        } else if (run.options.arrivals() == SimulationOptions.Arrivals.SPORADIC && run.random.nextInt(4) != 0) {
            gap += run.random.nextLong(period / 2 + 1);
        }
        schedule(task, Math.addExact(arrival, gap));
    }

    /** A distance between two known limits; each limit itself in one case of four. */
    private long gapUpTo(final long shortest, final long longest) {
        if (run.options.arrivals() != SimulationOptions.Arrivals.SPORADIC || longest == shortest) {
            return shortest;
        }
        final int kind = run.random.nextInt(4);
        return kind == 0 ? shortest : kind == 1 ? longest : shortest + run.random.nextLong(longest - shortest + 1);
    }

    /** The end of a job of another task releases one of this task: now, or its jitter later. */
    void onEvent(final int task) {
        final int source = run.taskSource + task;
        if (run.queue.isPending(source)) {
            // only where a job comes before the one that its predecessor's last end released: that one goes first
            run.queue.set(source, EventQueue.NEVER);
            onRelease(task);
        }
        nextArrivalNs[task] = run.nowNs;
        run.queue.set(source, Math.addExact(run.nowNs, late(run.set.jitterNs[task])));
    }

    boolean isWaiting(final int task) {
        return backlogSize[task] > 0;
    }

    private void push(final int task, final long arrival) {
        long[] ring = backlog[task];
        if (backlogSize[task] == ring.length) {
            final long[] larger = new long[ring.length * 2];
            for (int k = 0; k < ring.length; k++) {
                larger[k] = waiting(task, k);
            }
            ring = larger;
            backlog[task] = ring;
            backlogHead[task] = 0;
        }
        ring[(backlogHead[task] + backlogSize[task]) % ring.length] = arrival;
        backlogSize[task]++;
    }

    /** Takes the arrival of the job that has waited longest. */
    long pop(final int task) {
        final long arrival = waiting(task, 0);
        backlogHead[task] = (backlogHead[task] + 1) % backlog[task].length;
        backlogSize[task]--;
        return arrival;
    }

    private long waiting(final int task, final int index) {
        final long[] ring = backlog[task];
        return ring[(backlogHead[task] + index) % ring.length];
    }

    /** The run is over: jobs that wait may be late already. */
    void finish(final int task) {
        for (int k = 0; k < backlogSize[task]; k++) {
            run.observations.late(task, waiting(task, k), run.nowNs);
        }
    }
}
