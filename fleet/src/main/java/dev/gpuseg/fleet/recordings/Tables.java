/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import dev.gpuseg.tools.trace.RecordingRows;
import java.util.ArrayList;
import java.util.List;

/** The tables that recordings become. Their columns are documented in {@code fleet/docs/columns.tsv}. */
final class Tables {
    /**
     * A row with the recording that it is of.
     *
     * @param recording name of the file
     * @param robot     that recorded it
     * @param version   of its software
     * @param row       what is in it
     */
    record Of<T>(String recording, String robot, String version, T row) {
    }

    static final Table<Of<RecordingRows.Job>> JOBS = Tables.<RecordingRows.Job>of("jobs")
        .text("task", "name of the task", r -> r.row().task())
        .int32("number", "number among the jobs of its task, from 1", r -> r.row().number())
        .int32("priority", "1..99, 0 = best effort", r -> r.row().priority())
        .int32("gpu", "index of the GPU", r -> r.row().gpu())
        .text("policy", "in force at the release", r -> r.row().policy())
        .text("state", "`complete`, `skipped`, `given-up` or `open` (the recording ended first)", r -> r.row().state())
        .int64("release_ns", "when it was released", r -> r.row().releaseNs())
        .int64("response_ns", "release to end; null if it is not complete", r -> r.row().responseNs(), -1)
        .int64("deadline_ns", "relative deadline, 0 = none", r -> r.row().deadlineNs())
        .bool("late", "it missed its deadline", r -> r.row().late())
        .int32("segments", "segments that it began", r -> r.row().segments())
        .int32("preemptions", "of these", r -> r.row().preemptions())
        .int64("wait_ns", "these waited between begin and grant", r -> r.row().waitNs())
        .int64("held_ns", "these had the GPU", r -> r.row().heldNs())
        .text("source", "task that took the sample on which it works; null if it carries neither sample nor stamp",
            r -> r.row().source())
        .int64("age_ns", "end less the time of that sample; null if it is not complete or carries no stamp",
            r -> r.row().ageNs(), -1);

    static final Table<Of<RecordingRows.Segment>> SEGMENTS = Tables.<RecordingRows.Segment>of("segments")
        .text("task", "name of the task", r -> r.row().task())
        .int32("job", "number of the job, 0 = none is known", r -> r.row().job())
        .int64("ticket", "number of the segment in its task", r -> r.row().ticket())
        .int32("gpu", "index of the GPU", r -> r.row().gpu())
        .int32("context", "id of the process's context", r -> r.row().contextId())
        .text("policy", "in force at the begin", r -> r.row().policy())
        .text("state", "`complete`, `cancelled`, `aborted` or `open`", r -> r.row().state())
        .bool("optimistic", "the application went on without waiting", r -> r.row().optimistic())
        .bool("forced", "the daemon ended it", r -> r.row().forced())
        .int64("begin_ns", "when the application called", r -> r.row().beginNs())
        .int64("decided_ns", "when it was chosen", r -> r.row().decidedNs(), 0)
        .int64("grant_ns", "when it was granted", r -> r.row().grantNs(), 0)
        .int64("enforced_ns", "when the others were disabled", r -> r.row().enforcedNs(), 0)
        .int64("end_ns", "when the application called", r -> r.row().endNs(), 0)
        .int64("wait_ns", "between begin and grant", r -> r.row().waitNs())
        .int64("held_ns", "it had the GPU", r -> r.row().heldNs())
        .int64("device_ns", "as the application measured it", r -> r.row().deviceNs(), 0)
        .int32("preemptions", "how many", r -> r.row().preemptions())
        .int64("deadline_ns", "absolute deadline", r -> r.row().deadlineNs(), 0);

    static final Table<Of<RecordingRows.Decision>> DECISIONS = Tables.<RecordingRows.Decision>of("decisions")
        .int64("seq", "number of the event in the journal", r -> r.row().seq())
        .int64("time_ns", "when", r -> r.row().timeNs())
        .text("kind", "name of the event: DECIDED, GRANT, PREEMPT, RESUME, ENFORCED, CANCEL, FORCED_END, PRIORITY, "
            + "POLICY, ANTICIPATE, MISS, OVERRUN, DISABLE, ENABLE", r -> r.row().kind())
        .int32("gpu", "index of the GPU", r -> r.row().gpu())
        .text("task", "whom it concerns; null = no task", r -> r.row().task())
        .int64("ticket", "of its segment", r -> r.row().ticket(), 0)
        .int32("context", "id of the context, 0 = none", r -> r.row().contextId())
        .text("by_task", "PREEMPT: the task that goes first", r -> r.row().byTask())
        .int64("value_ns", "DISABLE, ENABLE: cost; MISS: the deadline; OVERRUN: the budget", r -> r.row().valueNs(), 0);

    static final Table<Outcome> RECORDINGS = new Table<Outcome>("recordings")
        .text("recording", "name of the file below the directory", Outcome::name)
        .text("robot", "that recorded it", Outcome::robot)
        .text("version", "of its software", Outcome::version)
        .text("status", "`ok`, `truncated`, `damaged` or `not-a-recording`; only of `ok` ones rows are in the other "
            + "tables", Outcome::status)
        .text("reason", "one line; empty if it is ok", Outcome::reason)
        .int64("bytes", "size of the file", Outcome::bytes)
        .int64("events", "in it", Outcome::events)
        .int64("lost_events", "missing numbers", Outcome::lostEvents)
        .int64("duration_ns", "from the first event to the last", Outcome::durationNs)
        .text("mechanism", "of the daemon", Outcome::mechanism)
        .bool("simulated", "the GPU was the virtual one", Outcome::simulated)
        .text("created_utc", "when it was written, ISO 8601", Outcome::createdUtc)
        .text("commit", "that the daemon was built from", Outcome::commit)
        .text("sha256", "of its events", Outcome::sha256)
        .int64("jobs", "rows of `jobs`", Outcome::jobs)
        .int64("segments", "rows of `segments`", Outcome::segments)
        .int64("decisions", "rows of `decisions`", Outcome::decisions);

    private Tables() {
    }

    private static <T> Table<Of<T>> of(final String name) {
        return new Table<Of<T>>(name)
            .text("recording", "name of the file below the directory", Of::recording)
            .text("robot", "that recorded it", Of::robot)
            .text("version", "of its software", Of::version);
    }

    /** What {@code fleet/docs/columns.tsv} says; a test compares. */
    static List<String> documentation() {
        final List<String> lines = new ArrayList<>(List.of("table\tcolumn\ttype\tmeaning"));
        for (final Table<?> table : List.of(RECORDINGS, JOBS, SEGMENTS, DECISIONS)) {
            lines.addAll(table.documentation());
        }
        return lines;
    }
}
