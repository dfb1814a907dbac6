/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.model.MissLimit;
import dev.gpuseg.analysis.model.Segment;
import dev.gpuseg.analysis.model.Task;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Late jobs of a task that may miss deadlines, among any so many consecutive ones, and how far apart its overload jobs
 * are ({@code analysis/docs/misses.md}). Jobs are consecutive as long as one daemon runs and enforces. Stateless.
 */
final class TraceMisses {
    /**
     * A late job.
     *
     * @param job  of the task
     * @param late late ones among it and the jobs before it that count with it, itself included
     */
    record Late(Trace.Job job, int late) {
    }

    /**
     * An overload job that came too early.
     *
     * @param job        of the task
     * @param distanceNs between its release and that of the overload job before
     */
    record Early(Trace.Job job, long distanceNs) {
    }

    private TraceMisses() {
    }

    /**
     * The late jobs of a task with a limit.
     *
     * @param model   the task, with a limit
     * @param task    what was recorded of it
     * @param untilNs end of the trace: an unfinished job is late if its deadline was before, or if it was cancelled,
     *                whose output is missing as that of a late one is
     * @return in the order of their releases
     */
    static List<Late> late(final Task model, final Trace.Task task, final long untilNs) {
        final MissLimit limit = model.missLimit();
        final List<Late> all = new ArrayList<>();
        final boolean[] ring = new boolean[limit.jobs()];
        int at = 0;
        int count = 0;
        int run = -1;
        for (final Trace.Job job : task.jobs) {
            if (job.run != run || !Trace.isEnforced(job.policy)) {
                Arrays.fill(ring, false);
                count = 0;
                run = Trace.isEnforced(job.policy) ? job.run : -1;
            }
            if (!Trace.isEnforced(job.policy)) {
                continue;
            }
            final boolean late = job.cancelled
                || (job.isComplete() ? job.responseNs : untilNs - job.releaseNs) > model.deadlineNs();
            count += (late ? 1 : 0) - (ring[at] ? 1 : 0);
            ring[at] = late;
            at = (at + 1) % ring.length;
            if (late) {
                all.add(new Late(job, count));
            }
        }
        return all;
    }

    /**
     * The overload jobs of a task that came sooner than its set says. Only device parts are looked at: other parts
     * cannot be told from interference.
     *
     * @param model a task with overload
     * @param task  what was recorded of it
     * @return in the order of their releases
     */
    static List<Early> early(final Task model, final Trace.Task task) {
        final List<Early> all = new ArrayList<>();
        Trace.Job before = null;
        for (final Trace.Job job : task.jobs) {
            if (!Trace.isEnforced(job.policy)) {
                before = null;
            } else if (!model.alwaysOverloads() && isOverload(model, job)) {
                final boolean together = before != null && before.run == job.run;
                if (together && job.releaseNs - before.releaseNs < model.overload().periodNs() - model.jitterNs()) {
                    all.add(new Early(job, job.releaseNs - before.releaseNs));
                }
                before = job;
            }
        }
        return all;
    }

    private static boolean isOverload(final Task model, final Trace.Job job) {
        int at = 0;
        for (final Segment part : model.segments()) {
            if (part instanceof Segment.Gpu gpu && at < job.segments.size()
                && job.segments.get(at++).deviceNs > model.overload().typicalNs(gpu.deviceNs())) {
                return true;
            }
        }
        return false;
    }
}
