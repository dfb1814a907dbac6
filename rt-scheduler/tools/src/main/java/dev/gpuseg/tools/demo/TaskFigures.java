/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.demo;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.analysis.model.Task;
import dev.gpuseg.tools.trace.Trace;
import dev.gpuseg.tools.trace.TraceStats;

/**
 * What one task achieved in one phase.
 *
 * @param task   which
 * @param jobs   jobs completed
 * @param misses jobs of a real-time task that were late
 * @param p50Ns  median response
 * @param p99Ns  99th percentile of the response (nearest rank)
 * @param maxNs  longest response
 */
public record TaskFigures(Task task, int jobs, int misses, long p50Ns, long p99Ns, long maxNs) {
    private static final double NS_PER_MS = 1e6;
    private static final double DIGITS = 1e3;

    /**
     * What the journal says of a task, as every other command counts it.
     *
     * @param task  which
     * @param trace the demo's journal
     * @param pid   the process that was the task in this phase
     * @return its figures
     */
    static TaskFigures of(final Task task, final Trace trace, final int pid) {
        final TraceStats.Jobs jobs = TraceStats.jobsOf(trace, pid);
        final TraceStats.Times response = jobs.response();
        return new TaskFigures(task, response.count(), jobs.misses(), response.p50Ns(), response.p99Ns(),
            response.maxNs());
    }

    public static double milliseconds(final long ns) {
        return Math.round(ns / NS_PER_MS * DIGITS) / DIGITS;
    }

    public void putInto(final ObjectNode node) {
        node.put("name", task.name());
        node.put("priority", task.priority());
        node.put("jobs", jobs);
        node.put("misses", misses);
        node.putObject("response_ms").put("p50", milliseconds(p50Ns)).put("p99", milliseconds(p99Ns))
            .put("max", milliseconds(maxNs));
    }
}
