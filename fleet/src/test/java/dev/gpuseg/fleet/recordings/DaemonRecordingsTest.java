/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.recordings;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.engine.TestEngine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Two workloads run under a real daemon on the virtual GPU, and what they recorded runs again ({@code gpuseg replay}).
 * The tables and figures of all four recordings are those that {@code gpuseg trace stats} prints of each.
 */
@Tag("long")
@Timeout(900)
class DaemonRecordingsTest {
    private static final Path ROOT = Path.of(System.getProperty("gpuseg.root"));
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> WORKLOADS = List.of("robot", "av-bevfusion");
    private static final String FIRST = "1.0";
    private static final String AGAIN = "1.1";
    @TempDir
    private static Path directory;
    private static Engine engine;
    private static Path recordings;
    private static Path out;
    private static List<Outcome> outcomes;
    private static Figures figures;
    /** By recording: what trace stats says. */
    private static final Map<String, JsonNode> STATS = new TreeMap<>();

    @BeforeAll
    static void playAndConvert() throws Exception {
        assumeTrue(Files.isExecutable(ROOT.resolve("rt-scheduler/native/build/gpuseg-vgpu"))
            && Files.exists(ROOT.resolve(".gpuseg/java")), "the daemon and the virtual GPU are not built; type "
            + "./gpuseg build");
        recordings = Files.createDirectories(directory.resolve("recordings"));
        for (final String workload : WORKLOADS) {
            final Path demo = directory.resolve(workload);
            gpuseg("demo", "--workload", workload, "--duration", "2s", "--json", "--out", demo.toString());
            final Path first = record(demo, workload, FIRST);
            final Path replay = directory.resolve(workload + "-again");
            gpuseg("replay", first.toString(), "--duration", "2s", "--json", "--out", replay.toString());
            record(replay, workload, AGAIN);
        }
        engine = TestEngine.local(3);
        out = directory.resolve("out");
        final FleetRecordings fleet = new FleetRecordings(engine, out);
        outcomes = fleet.convert(recordings);
        figures = fleet.report(outcomes, FIRST, AGAIN);
    }

    @AfterAll
    static void stop() {
        if (engine != null) {
            engine.close();
        }
    }

    private static Path record(final Path run, final String robot, final String version) throws Exception {
        final String name = robot + "-" + version + ".gpuseg";
        final Path file = recordings.resolve(name);
        gpuseg("trace", "record", run.resolve("journal").toString(), "--label", "robot=" + robot
            + ",version=" + version, "--out", file.toString());
        STATS.put(name, JSON.readTree(gpuseg("trace", "stats", file.toString(), "--json")));
        return file;
    }

    /** The command of this checkout; its standard output. */
    private static String gpuseg(final String... arguments) throws Exception {
        final List<String> command = new ArrayList<>(List.of(ROOT.resolve("gpuseg").toString()));
        command.addAll(List.of(arguments));
        final Path said = Files.createTempFile(directory, "said", ".txt");
        final Path errors = Files.createTempFile(directory, "errors", ".txt");
        final Process process = new ProcessBuilder(command).redirectOutput(said.toFile())
            .redirectError(errors.toFile()).start();
        final boolean ended = process.waitFor(180, TimeUnit.SECONDS);
        if (!ended) {
            process.descendants().forEach(ProcessHandle::destroyForcibly);
            process.destroyForcibly();
        }
        assertTrue(ended && process.exitValue() == 0, () -> command + (ended ? " ended with status "
            + process.exitValue() : " did not end") + ": " + text(said) + text(errors));
        return Files.readString(said);
    }

    private static String text(final Path file) {
        try {
            return Files.readString(file);
        } catch (final IOException e) {
            return e.toString();
        }
    }

    private static Dataset<Row> table(final String name, final String recording) {
        return engine.session().read().parquet(out.resolve(name).toString()).where("recording = '" + recording + "'");
    }

    @Test
    void shouldTakeWhatTheDaemonSaysOfItselfAndItsLabels() {
        assertEquals(2 * WORKLOADS.size(), outcomes.size());
        for (final Outcome one : outcomes) {
            final JsonNode stats = STATS.get(one.name());
            assertTrue(one.isOk() && one.simulated() && one.mechanism().equals("sim"), one::toString);
            assertEquals(one.robot() + "-" + one.version() + ".gpuseg", one.name());
            assertEquals(stats.path("events").asLong(), one.events(), one.name());
            assertEquals(stats.path("lost_events").asLong(), one.lostEvents(), one.name());
            assertEquals(stats.path("duration_ns").asLong(), one.durationNs(), one.name());
            assertTrue(one.jobs() > 50 && one.segments() > 50, one::toString);
        }
    }

    /** Of every task under every policy: jobs, misses, responses; segments, their waits and preemptions. */
    @Test
    void shouldHaveInItsTablesWhatTraceStatsPrints() throws IOException {
        int compared = 0;
        for (final Map.Entry<String, JsonNode> recording : STATS.entrySet()) {
            long complete = 0;
            for (final JsonNode row : recording.getValue().path("tasks")) {
                final String what = recording.getKey() + " " + row.path("name").asText() + " under "
                    + row.path("policy").asText();
                final String which = "task = '" + row.path("name").asText() + "' and policy = '"
                    + row.path("policy").asText() + "'";
                final Dataset<Row> jobs = table("jobs", recording.getKey()).where(which);
                assertEquals(row.path("response_ns"), times(jobs.where("state = 'complete'"), "response_ns"), what);
                assertEquals(row.path("misses").asLong(0), jobs.where("late").count(), what);
                final Dataset<Row> segments = table("segments", recording.getKey()).where(which);
                assertEquals(row.path("wait_ns"), times(segments.where("end_ns is not null and state <> 'aborted' and "
                    + "state <> 'cancelled'"), "wait_ns"), what);
                assertEquals(row.path("segments").asLong(), segments.count(), what);
                assertEquals(row.path("preemptions").asLong(), segments.selectExpr("coalesce(sum(preemptions), 0)")
                    .head().getLong(0), what);
                complete += row.path("jobs").asLong();
                compared++;
            }
            assertEquals(complete, table("jobs", recording.getKey()).where("state = 'complete'").count());
        }
        // both phases of the demos, one policy in the replays
        assertTrue(compared >= 3 * (3 + 2), compared + " rows");
    }

    /** As {@code trace stats} has them: by nearest rank, exact. */
    private static JsonNode times(final Dataset<Row> rows, final String column) throws IOException {
        final long[] sorted = rows.select(column).collectAsList().stream().mapToLong(row -> row.getLong(0)).sorted()
            .toArray();
        // through text, so that numbers are of the same kinds as those that were read
        return JSON.readTree(JSON.createObjectNode().put("count", sorted.length).put("p50", at(sorted, 50))
            .put("p99", at(sorted, 99)).put("max", at(sorted, 100)).toString());
    }

    private static long at(final long[] sorted, final int percent) {
        return sorted.length == 0 ? 0 : sorted[(sorted.length * percent + 99) / 100 - 1];
    }

    @Test
    void shouldHaveEveryDecisionOfTheDaemon() {
        for (final Map.Entry<String, JsonNode> recording : STATS.entrySet()) {
            final Map<String, Long> kinds = new TreeMap<>();
            table("decisions", recording.getKey()).groupBy("kind").count().collectAsList().forEach(row -> kinds.put(
                row.getString(0), row.getLong(1)));
            assertTrue(kinds.containsKey("DISABLE") && kinds.containsKey("ENABLE"), kinds::toString);
            kinds.forEach((kind, count) -> assertEquals(recording.getValue().path("events_by_kind").path(kind).asLong(),
                count, recording.getKey() + " " + kind));
        }
    }

    /** A replay has one policy, so the report's figures of a recording are those of one row. */
    @Test
    void shouldHaveInItsReportWhatTraceStatsPrintsOfAReplay() {
        int compared = 0;
        for (final String workload : WORKLOADS) {
            final String name = workload + "-" + AGAIN + ".gpuseg";
            for (final JsonNode row : STATS.get(name).path("tasks")) {
                final Figures.OfRecording found = figures.byRecording().stream().filter(r -> r.recording().equals(name)
                    && r.task().equals(row.path("name").asText())).findFirst().orElseThrow();
                final Figures.Responses ofRobot = figures.responses().stream().filter(r -> r.robot().equals(workload)
                    && r.version().equals(AGAIN) && r.task().equals(found.task())).findFirst().orElseThrow();
                final JsonNode response = row.path("response_ns");
                assertEquals(row.path("jobs").asLong(), found.complete(), found.task());
                assertEquals(row.path("misses").asLong(0), found.late(), found.task());
                assertEquals(row.path("priority").asInt(), found.priority(), found.task());
                assertEquals(response.path("max").asLong(), found.maxNs(), found.task());
                assertEquals(response.path("max").asLong(), ofRobot.complete().maxNs(), found.task());
                for (final long[] pair : new long[][] {{response.path("p50").asLong(), found.p50Ns()},
                    {response.path("p99").asLong(), found.p99Ns()},
                    {response.path("p99").asLong(), ofRobot.complete().quantileNs(0.99)}}) {
                    assertTrue(pair[1] >= pair[0] && pair[1] <= pair[0] * 1.001, found.task() + ": " + pair[1] + " for "
                        + pair[0]);
                }
                compared++;
            }
        }
        assertTrue(compared >= 5, compared + " rows");
    }

    /** One recording of each version is not enough to judge, and the report says so. */
    @Test
    void shouldNotJudgeOneRecordingOfEachVersion() throws IOException {
        assertTrue(figures.drift().compared().size() >= 10 && figures.drift().compared().stream()
            .allMatch(c -> c.verdict() == Drift.Verdict.TOO_FEW), () -> figures.drift().toString());
        assertTrue(Files.readString(out.resolve("report.html")).contains("SIMULATED GPU</span> in 4 of 4 recordings"));
    }
}
