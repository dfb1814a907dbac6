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
    /** Windows that used up more than their budget. */
    final long[] overruns;
    /** Of tasks with a limit: which of the last jobs were late, as a ring; null = no limit. */
    private final boolean[][] recent;
    private final int[] recentAt;
    private final int[] recentMisses;
    private final int[] maxRecentMisses;

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
        overruns = new long[n];
        recent = new boolean[n][];
        recentAt = new int[n];
        recentMisses = new int[n];
        maxRecentMisses = new int[n];
        for (int i = 0; i < n; i++) {
            recent[i] = set.missLimit[i] == null ? null : new boolean[set.missLimit[i].jobs()];
        }
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
        Arrays.fill(overruns, 0);
        Arrays.fill(recentAt, 0);
        Arrays.fill(recentMisses, 0);
        Arrays.fill(maxRecentMisses, 0);
        for (final boolean[] ring : recent) {
            if (ring != null) {
                Arrays.fill(ring, false);
            }
        }
    }

    /** The next job of a task is on time or late: jobs end in the order of their arrivals. */
    private void judge(final int task, final boolean missed) {
        misses[task] += missed ? 1 : 0;
        final boolean[] ring = recent[task];
        if (ring != null) {
            recentMisses[task] += (missed ? 1 : 0) - (ring[recentAt[task]] ? 1 : 0);
            ring[recentAt[task]] = missed;
            recentAt[task] = (recentAt[task] + 1) % ring.length;
            maxRecentMisses[task] = Math.max(maxRecentMisses[task], recentMisses[task]);
        }
    }

    /** Most misses among any so many consecutive jobs as the limit says; without a limit all misses. */
    long mostMisses(final int task) {
        return recent[task] == null ? misses[task] : maxRecentMisses[task];
    }

    private boolean isBroken(final int task) {
        return mostMisses(task) > (recent[task] == null ? 0 : set.missLimit[task].misses());
    }

    /** A job ended; true if that was too late. */
    boolean ended(final int task, final long arrivalNs, final long nowNs) {
        final long responseNs = nowNs - arrivalNs;
        completed[task]++;
        sumResponseNs[task] += responseNs;
        observe(task, arrivalNs, responseNs);
        final boolean missed = responseNs > set.deadlineNs[task];
        judge(task, missed);
        return missed;
    }

    /** A job is unfinished at the end of the run. */
    void unfinished(final int task, final long arrivalNs, final long nowNs) {
        observe(task, arrivalNs, nowNs - arrivalNs);
        late(task, arrivalNs, nowNs);
    }

    /** A job that has not started at the end of the run. */
    void late(final int task, final long arrivalNs, final long nowNs) {
        judge(task, nowNs - arrivalNs > set.deadlineNs[task]);
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
            if (set.realTime[i] && isBroken(i)) {
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
                worstArrivalNs[i], preemptions[i], maxGrantWaitNs[i], set.missLimit[i], mostMisses(i)));
        }
        return all;
    }
}
