/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import java.io.Serializable;
import java.util.List;

/**
 * What the tables say of a fleet. Times in ns.
 *
 * @param outcomes     of every file, by name
 * @param responses    by task, version, robot
 * @param byRecording  by recording and task: the unit of the comparison of versions
 * @param chains       by largest age
 * @param worstJobs    by response / deadline
 * @param drift        of two versions; null = there are not two
 */
public record Figures(List<Outcome> outcomes, List<Responses> responses, List<OfRecording> byRecording,
    List<ChainAge> chains, List<WorstJob> worstJobs, Drift drift) {
    /**
     * The jobs of a task.
     *
     * @param task       its name
     * @param version    of the software
     * @param robot      that recorded them; empty = all of the version
     * @param priority   largest seen, 0 = best effort
     * @param deadlineNs largest seen, 0 = none
     * @param recordings with such jobs
     * @param jobs       released
     * @param late       that missed their deadline
     * @param complete   their responses
     */
    public record Responses(String task, String version, String robot, int priority, long deadlineNs, long recordings,
        long jobs, long late, ResponseHistogram complete) {
    }

    /**
     * The jobs of a task in one recording.
     *
     * @param recording  name of the file
     * @param robot      that recorded it
     * @param version    of its software
     * @param task       name of the task
     * @param priority   0 = best effort
     * @param deadlineNs 0 = none
     * @param jobs       released
     * @param complete   of these
     * @param late       that missed their deadline
     * @param p50Ns      of the responses
     * @param p99Ns      of the responses
     * @param maxNs      of the responses
     */
    public record OfRecording(String recording, String robot, String version, String task, int priority,
        long deadlineNs, long jobs, long complete, long late, long p50Ns, long p99Ns, long maxNs)
        implements Serializable {
    }

    /**
     * Ages of the data at the end of a chain.
     *
     * @param source    task that took the samples
     * @param task      that worked on them
     * @param version   of the software
     * @param robot     that recorded them
     * @param ages      end of a job less the time of its sample
     * @param recording with the largest
     */
    public record ChainAge(String source, String task, String version, String robot, ResponseHistogram ages,
        String recording) {
    }

    /**
     * A job that was close to its deadline or beyond it.
     *
     * @param recording  name of the file
     * @param robot      that recorded it
     * @param version    of its software
     * @param task       name of the task
     * @param number     of the job
     * @param responseNs of the job
     * @param deadlineNs of the task
     * @param waitNs     its segments waited for their grants
     * @param preemptions of its segments
     */
    public record WorstJob(String recording, String robot, String version, String task, int number, long responseNs,
        long deadlineNs, long waitNs, int preemptions) {
    }
}
