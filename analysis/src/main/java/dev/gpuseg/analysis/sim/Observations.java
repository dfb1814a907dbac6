/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** What is seen of each task in a run. */
final class Observations {
    private final SimulatedSet set;
    final long[] jobs;
    final long[] completed;
    final long[] misses;
    final long[] maxResponseNs;
    final long[] sumResponseNs;
    final long[] worstArrivalNs;
    final long[] preemptions;
    final long[] maxGrantWaitNs;

    Observations(final SimulatedSet set) {
        this.set = set;
        final int n = set.taskCount;
        jobs = new long[n];
        completed = new long[n];
        misses = new long[n];
        maxResponseNs = new long[n];
        sumResponseNs = new long[n];
        worstArrivalNs = new long[n];
        preemptions = new long[n];
        maxGrantWaitNs = new long[n];
    }

    void reset() {
        Arrays.fill(jobs, 0);
        Arrays.fill(completed, 0);
        Arrays.fill(misses, 0);
        Arrays.fill(maxResponseNs, 0);
        Arrays.fill(sumResponseNs, 0);
        Arrays.fill(worstArrivalNs, -1);
        Arrays.fill(preemptions, 0);
        Arrays.fill(maxGrantWaitNs, 0);
    }

    /** A job ended; true if that was too late. */
    boolean ended(final int task, final long arrivalNs, final long nowNs) {
        final long responseNs = nowNs - arrivalNs;
        completed[task]++;
        sumResponseNs[task] += responseNs;
        observe(task, arrivalNs, responseNs);
        final boolean missed = responseNs > set.deadlineNs[task];
        misses[task] += missed ? 1 : 0;
        return missed;
    }

    /** A job is unfinished at the end of the run. */
    void unfinished(final int task, final long arrivalNs, final long nowNs) {
        observe(task, arrivalNs, nowNs - arrivalNs);
        late(task, arrivalNs, nowNs);
    }

    /** A job that has not started at the end of the run. */
    void late(final int task, final long arrivalNs, final long nowNs) {
        misses[task] += nowNs - arrivalNs > set.deadlineNs[task] ? 1 : 0;
    }

    private void observe(final int task, final long arrivalNs, final long responseNs) {
        if (responseNs > maxResponseNs[task] || worstArrivalNs[task] < 0) {
            maxResponseNs[task] = responseNs;
            worstArrivalNs[task] = arrivalNs;
        }
    }

    void granted(final int task, final long waitNs) {
        maxGrantWaitNs[task] = Math.max(maxGrantWaitNs[task], waitNs);
    }

    boolean anyRealTimeMiss() {
        for (int i = 0; i < misses.length; i++) {
            if (set.realTime[i] && misses[i] > 0) {
                return true;
            }
        }
        return false;
    }

    List<SimulationResult.TaskObservation> all() {
        final List<SimulationResult.TaskObservation> all = new ArrayList<>(jobs.length);
        for (int i = 0; i < jobs.length; i++) {
            all.add(new SimulationResult.TaskObservation(set.nameOf(i), !set.realTime[i], set.deadlineNs[i], jobs[i],
                completed[i], misses[i], maxResponseNs[i], completed[i] == 0 ? 0 : sumResponseNs[i] / completed[i],
                worstArrivalNs[i], preemptions[i], maxGrantWaitNs[i]));
        }
        return all;
    }
}
