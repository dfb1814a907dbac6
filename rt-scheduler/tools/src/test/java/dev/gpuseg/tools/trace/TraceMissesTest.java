/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.Analyses;
import dev.gpuseg.analysis.rta.AnalysisResult;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Weakly hard tasks in a journal. */
@Timeout(60)
class TraceMissesTest {
    private static final long MS = 1_000_000;
    private static final long SECOND = 1_000 * MS;

    @TempDir
    private Path directory;
    private JournalRing ring;
    private int ticket;

    private interface Jobs {
        void write();
    }

    /** One run of a daemon with the task control. */
    private void run(final Path journal, final String name, final long startNs, final Jobs jobs) {
        try (JournalRing opened = new JournalRing(directory.resolve(name), 1 << 18);
            JournalAgent agent = new JournalAgent(opened, journal, 1 << 20)) {
            ring = opened;
            ring.writeText(EventKind.START, startNs, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            ring.writeText(EventKind.TASK_OPEN, startNs, 0, 1, 1, 1, 0, 0, "{\"name\":\"control\",\"priority\":10}");
            jobs.write();
            agent.drain();
        }
    }

    /** A job that responds in 3 ms, or in 9, with one segment whose device part is as given. */
    private void job(final long releaseNs, final boolean late, final long deviceNs) {
        final long endNs = releaseNs + (late ? 9 : 3) * MS;
        ticket++;
        ring.write(EventKind.RELEASE, releaseNs, 0, 0, 1, 0, 1, 1, releaseNs, 0, 0);
        ring.write(EventKind.BEGIN, releaseNs, 0, 0, 1, ticket, 1, 1, releaseNs, releaseNs, 0);
        ring.write(EventKind.DECIDED, releaseNs, 0, 0, 1, ticket, 1, 1, 0, 0, 0);
        ring.write(EventKind.GRANT, releaseNs, 0, 0, 1, ticket, 1, 1, 0, 0, 0);
        ring.write(EventKind.END, releaseNs + 2 * MS, 0, 0, 1, ticket, 1, 1, releaseNs + 2 * MS, deviceNs, 0);
        ring.write(EventKind.JOB_END, endNs, 0, 0, 1, 0, 1, 1, endNs, endNs - releaseNs, 0);
    }

    private void jobs(final long startNs, final int count, final Set<Integer> late) {
        for (int k = 0; k < count; k++) {
            job(startNs + 10 * MS * (k + 1), late.contains(k), MS);
        }
    }

    private static TaskSet set(final String overload) throws Exception {
        return new TaskSetReader().readText("""
            id: misses
            platform: {cpus: 1, epsilon: 0ms}
            tasks:
              - {name: control, cpu: 1, period: 10ms, max_period: 10ms, deadline: 5ms, priority: 10,
                 weakly_hard: {misses: 2, jobs: 5}, %s segments: [{gpu: {host: 0ms, device: 2ms}}, {cpu: 1ms}]}
            """.formatted(overload), "set.yaml");
    }

    private static List<TraceCheck.Finding> of(final TraceCheck.Result result, final String kind) {
        return result.findings().stream().filter(finding -> finding.kind().equals(kind)).toList();
    }

    @Test
    void shouldNameTheJobThatBreaksTheLimit() throws Exception {
        final Path journal = directory.resolve("journal");
        // jobs 1 and 4 of 5 are allowed; with 6 there are three of 4..8 late; 12 and 17 are not in one row of five
        run(journal, "ring", SECOND, () -> jobs(SECOND, 20, Set.of(0, 3, 5, 6, 11, 16)));
        final TraceCheck.Result result = TraceCheck.of(TraceBuilder.read(Source.open(journal)), set(""), null, 0);
        assertEquals(List.of(7), of(result, "weakly-hard").stream().map(TraceCheck.Finding::job).toList());
        assertEquals(3, of(result, "weakly-hard").get(0).measuredNs());
        assertEquals(2, of(result, "weakly-hard").get(0).limitNs());
        assertTrue(of(result, "weakly-hard").get(0).text().contains("is the 3. late one of 5 in a row; the set allows "
            + "2"), result.findings().toString());
        assertEquals(List.of(), of(result, "deadline"), "single misses are allowed");
        assertEquals(new TraceCheck.MissRow("control", 6, 3, 5, 2, null), result.misses().get(0));
    }

    /** The last job's deadline is after the end of the recording: that it was cancelled is enough. */
    @Test
    void shouldCountASkippedJobAsOneThatWasNotMet() throws Exception {
        final Path journal = directory.resolve("journal");
        run(journal, "ring", SECOND, () -> {
            jobs(SECOND, 4, Set.of(1, 2));
            final long releaseNs = SECOND + 50 * MS;
            ring.write(EventKind.RELEASE, releaseNs, 0, 0, 1, 0, 1, 1, releaseNs, 0, 0);
            ring.write(EventKind.JOB_CANCEL, releaseNs + MS, 0, 0, 1, 0, 1, 1, releaseNs + MS, 0, 0);
        });
        final Trace trace = TraceBuilder.read(Source.open(journal));
        final TraceCheck.Result result = TraceCheck.of(trace, set(""), null, 0);
        assertEquals(List.of(5), of(result, "weakly-hard").stream().map(TraceCheck.Finding::job).toList());
        assertTrue(result.notes().contains("task \"control\": its program skipped 1 of the jobs that it had "
            + "released; they count as late"), result.notes().toString());
    }

    @Test
    void shouldShowSkippedJobsBesideThoseThatEnded() throws Exception {
        final Path journal = directory.resolve("journal");
        run(journal, "ring", SECOND, () -> {
            jobs(SECOND, 3, Set.of());
            for (int k = 4; k <= 5; k++) {
                final long releaseNs = SECOND + 10 * MS * k;
                ring.write(EventKind.RELEASE, releaseNs, 0, 0, 1, 0, 1, 1, releaseNs, 0, 0);
                ring.write(EventKind.JOB_CANCEL, releaseNs + MS, 0, 0, 1, 0, 1, 1, releaseNs + MS, 0, 0);
                ring.write(EventKind.JOB_CANCEL, releaseNs + MS, 0, 0, 1, 0, 1, 1, releaseNs + MS, 0, 0);
            }
        });
        final Trace trace = TraceBuilder.read(Source.open(journal));
        final JsonNode row = TraceStats.json(trace).path("tasks").get(0);
        assertEquals(3, row.path("jobs").asInt());
        assertEquals(2, row.path("skipped").asInt());
        assertEquals(3, row.path("response_ns").path("count").asInt());
        assertTrue(TraceStats.text(trace).contains("   2 jobs skipped\n"), TraceStats.text(trace));
    }

    @Test
    void shouldHoldMissesAgainstTheBound() throws Exception {
        final Path journal = directory.resolve("journal");
        run(journal, "ring", SECOND, () -> jobs(SECOND, 10, Set.of(2)));
        final TaskSet set = set("");
        final AnalysisResult bounds = Analyses.get("gcaps-window-suspend").analyse(set);
        assertEquals(0L, bounds.misses().get(0).bound(), "alone it is never late");
        final TraceCheck.Result result = TraceCheck.of(TraceBuilder.read(Source.open(journal)), set, bounds, 0);
        assertEquals(List.of(3), of(result, "miss-bound").stream().map(TraceCheck.Finding::job).toList());
        assertEquals(List.of(), of(result, "weakly-hard"));
    }

    @Test
    void shouldCountAnewAfterTheDaemonStartedAgain() throws Exception {
        final Path journal = directory.resolve("journal");
        run(journal, "ring1", SECOND, () -> jobs(SECOND, 5, Set.of(3, 4)));
        run(journal, "ring2", 60 * SECOND, () -> jobs(60 * SECOND, 5, Set.of(0)));
        final TraceCheck.Result result = TraceCheck.of(TraceBuilder.read(Source.open(journal)), set(""), null, 0);
        assertEquals(List.of(), of(result, "weakly-hard"), "jobs between the two runs are not known");
        assertEquals(3, result.misses().get(0).late());
    }

    @Test
    void shouldNameOverloadJobsThatAreTooClose() throws Exception {
        final Path journal = directory.resolve("journal");
        run(journal, "ring", SECOND, () -> {
            for (int k = 1; k <= 30; k++) {
                job(SECOND + 10 * MS * k, false, k == 3 || k == 13 || k == 18 ? 2 * MS : MS);
            }
        });
        final TraceCheck.Result result = TraceCheck.of(TraceBuilder.read(Source.open(journal)),
            set("overload: {period: 100ms, typical: 50},"), null, 0);
        assertEquals(List.of(18), of(result, "overload").stream().map(TraceCheck.Finding::job).toList());
        assertEquals(50 * MS, of(result, "overload").get(0).measuredNs());
        assertEquals(100 * MS, of(result, "overload").get(0).limitNs());
    }
}
