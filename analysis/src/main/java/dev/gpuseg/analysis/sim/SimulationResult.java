/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

import dev.gpuseg.analysis.model.MissLimit;
import java.util.List;

/**
 * What a run showed.
 *
 * @param options   what was simulated
 * @param taskSetId id of the set
 * @param tasks     in the order of the set
 * @param events    events handled
 * @param updates   runlist updates, of all GPUs
 * @param endNs     time of the last event
 * @param chains    in the order of the set
 */
public record SimulationResult(SimulationOptions options, String taskSetId, List<TaskObservation> tasks, long events,
    long updates, long endNs, List<ChainObservation> chains) {
    /** Copies the lists. */
    public SimulationResult {
        tasks = List.copyOf(tasks);
        chains = List.copyOf(chains);
    }

    /**
     * What a run showed of one chain. Times in nanoseconds.
     *
     * @param name               the chain
     * @param outputs            jobs of the last task that ended with a sample
     * @param misses             outputs that were too old, or reacted too late
     * @param maxReactionNs      longest time from an event at the input to the first output that reflects it, 0 if none
     * @param reactionDeadlineNs its limit, 0 = none
     * @param maxAgeNs           largest age of the sample behind an output, 0 if none
     * @param ageDeadlineNs      its limit, 0 = none
     */
    public record ChainObservation(String name, long outputs, long misses, long maxReactionNs, long reactionDeadlineNs,
        long maxAgeNs, long ageDeadlineNs) {
    }

    /** Whether at least one output of a chain was too old, or came too late. */
    public boolean anyChainMiss() {
        return chains.stream().anyMatch(chain -> chain.misses() > 0);
    }

    /**
     * Whether a real-time task missed a deadline that it may not miss.
     *
     * @return true if a job ended late, or was late and unfinished at the end of the run; of a task with a limit, if so
     *     many jobs did that the limit is broken
     */
    public boolean anyRealTimeMiss() {
        return tasks.stream().anyMatch(t -> !t.bestEffort()
            && t.mostMisses() > (t.missLimit() == null ? 0 : t.missLimit().misses()));
    }

    /**
     * What a run showed of one task. Times in nanoseconds.
     *
     * @param name             the task
     * @param bestEffort       whether it has no deadline that counts
     * @param deadlineNs       its relative deadline
     * @param jobs             jobs that arrived
     * @param completed        jobs that ended
     * @param misses           jobs that ended after their deadline, or were unfinished after it
     * @param maxResponseNs    longest response, from arrival to end; of an unfinished job, its age at the end of the
     *                         run
     * @param meanResponseNs   mean response of completed jobs, 0 if none
     * @param worstArrivalNs   arrival of the job with the longest response, -1 if none
     * @param preemptions      times that a segment was preempted on the GPU
     * @param maxGrantWaitNs   longest wait from begin to grant
     * @param missLimit        how many of its jobs may be late, null = none
     * @param mostMisses       most misses among any {@link MissLimit#jobs} consecutive jobs; without a limit all misses
     */
    public record TaskObservation(String name, boolean bestEffort, long deadlineNs, long jobs, long completed,
        long misses, long maxResponseNs, long meanResponseNs, long worstArrivalNs, long preemptions,
        long maxGrantWaitNs, MissLimit missLimit, long mostMisses) {
    }
}
