/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import dev.gpuseg.ipc.journal.EventKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;

/** Formats of lines: a table of segments (CSV), and events as babeltrace2 prints CTF traces. Stateless. */
public final class TextExport {
    private static final long NS_PER_S = 1_000_000_000L;
    private static final DateTimeFormatter TIME =
        DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.nnnnnnnnn", Locale.ROOT).withZone(ZoneOffset.UTC);

    private TextExport() {
    }

    /**
     * Writes one line per segment. Times are ns of CLOCK_MONOTONIC, 0 where the segment did not come so far.
     *
     * @param trace what happened
     * @param to    where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void csv(final Trace trace, final Writer to) throws IOException {
        to.write("task,priority,gpu,context,policy,job,ticket,optimistic,cancelled,release_ns,begin_ns,decided_ns,"
            + "grant_ns,enforced_ns,first_preempted_ns,last_resumed_ns,end_ns,wait_ns,held_ns,device_ns,preemptions,"
            + "deadline_ns,late,simulated\n");
        for (final Trace.Task task : trace.tasks) {
            for (final Trace.Segment s : task.segments) {
                final boolean preempted = !s.preemptions.isEmpty();
                final boolean late = s.deadlineNs > 0 && s.endNs > s.deadlineNs && task.isRealTime();
                to.write(quoted(task.name) + ',' + task.priority + ',' + task.gpu + ',' + task.contextId + ','
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

    private static String quoted(final String text) {
        return text.matches("[A-Za-z0-9 _.#-]*") ? text : '"' + text.replace("\"", "\"\"") + '"';
    }

    /**
     * Writes one line per event, as babeltrace2's text sink does: {@code [time] (+difference) host event: { stream
     * context }, { fields }}. Times are CLOCK_REALTIME where the recording holds a snapshot of it, else seconds of
     * CLOCK_MONOTONIC.
     *
     * @param source recording or journal
     * @param trace  the same, for its clocks
     * @param to     where to; stays open
     * @throws IOException if it cannot be written
     */
    public static void ctf(final Source source, final Trace trace, final Writer to) throws IOException {
        final Trace.Clock clock = trace.clocks.isEmpty() ? null : trace.clocks.get(0);
        final long[] lastNs = {0};
        try {
            source.forEach(e -> {
                final EventKind kind = e.kind();
                final String difference = lastNs[0] == 0 ? "(+?.?????????)"
                    : String.format(Locale.ROOT, "(+%d.%09d)", Math.max(0, e.timeNs() - lastNs[0]) / NS_PER_S,
                        Math.max(0, e.timeNs() - lastNs[0]) % NS_PER_S);
                lastNs[0] = e.timeNs();
                write(to, "[" + time(e.timeNs(), clock) + "] " + difference + " gpuseg:"
                    + (kind == null ? "kind_" + e.kindCode() : kind.name().toLowerCase(Locale.ROOT)) + ": { seq = "
                    + e.seq() + ", monotonic = " + e.timeNs() + ", gpu = " + e.gpu() + " }, { task_id = " + e.taskId()
                    + ", ticket = " + e.ticket() + ", context_id = " + e.contextId() + ", client_id = " + e.clientId()
                    + ", flags = " + e.flags() + ", arg0 = " + e.arg0() + ", arg1 = " + e.arg1() + ", arg2 = "
                    + e.arg2() + ", text = \"" + e.text().replace("\\", "\\\\").replace("\"", "\\\"") + "\" }\n");
            });
        } catch (final UncheckedIOException e) {
            throw e.getCause();
        }
    }

    private static void write(final Writer to, final String line) {
        try {
            to.write(line);
        } catch (final IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static String time(final long timeNs, final Trace.Clock clock) {
        if (clock == null) {
            return String.format(Locale.ROOT, "%d.%09d", timeNs / NS_PER_S, timeNs % NS_PER_S);
        }
        final long realNs = clock.realtimeNs() + (timeNs - clock.monotonicNs());
        return TIME.format(Instant.ofEpochSecond(Math.floorDiv(realNs, NS_PER_S), Math.floorMod(realNs, NS_PER_S)));
    }
}
