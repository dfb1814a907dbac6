/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.analysis.io.CsvTable;
import java.io.IOException;
import java.io.Writer;

/** A table with one line per segment (CSV). Stateless. */
final class CsvExport {
    private CsvExport() {
    }

    /**
     * Writes one line per segment. Times are ns of CLOCK_MONOTONIC, 0 where the segment did not come so far.
     *
     * @param trace what happened
     * @param to    where to; stays open
     * @throws IOException if it cannot be written
     */
    static void write(final Trace trace, final Writer to) throws IOException {
        to.write("task,priority,gpu,context,policy,job,ticket,optimistic,cancelled,release_ns,begin_ns,decided_ns,"
            + "grant_ns,enforced_ns,first_preempted_ns,last_resumed_ns,end_ns,wait_ns,held_ns,device_ns,preemptions,"
            + "deadline_ns,late,simulated\n");
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Segment s : task.segments) {
                final boolean preempted = !s.preemptions.isEmpty();
                final boolean late = s.deadlineNs > 0 && s.endNs > s.deadlineNs && task.isRealTime();
                to.write(CsvTable.field(task.name) + ',' + task.priority + ',' + task.gpu + ',' + task.contextId + ','
                    + s.policy + ',' + (s.job == null ? 0 : s.job.number) + ',' + s.ticket + ',' + bit(s.optimistic)
                    + ',' + bit(s.cancelled) + ',' + s.releaseNs + ',' + s.beginNs + ',' + s.decidedNs + ','
                    + s.grantNs + ',' + s.enforcedNs + ',' + (preempted ? s.preemptions.get(0).timeNs() : 0) + ','
                    + (preempted && s.holds.size() > 1 ? s.holds.get(s.holds.size() - 1).fromNs() : 0) + ','
                    + s.endNs + ',' + s.waitNs() + ',' + s.heldNs() + ',' + s.deviceNs + ',' + s.preemptions.size()
                    + ',' + s.deadlineNs + ',' + bit(late) + ',' + bit(trace.simulated) + '\n');
            }
        }
    }

    private static int bit(final boolean value) {
        return value ? 1 : 0;
    }
}
