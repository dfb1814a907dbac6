/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Which sample each output of a chain has, and what follows for its reaction time and age. */
@Timeout(60)
class TraceChainsTest {
    private static final long MS = 1_000_000;
    private static final long SECOND = 1_000 * MS;

    @TempDir
    private Path directory;

    /** One run: the producer samples every 10 ms, the consumer's output follows 5 ms after the sample. */
    private void run(final String ringName, final Path journal, final long startNs, final int jobs) {
        try (JournalRing ring = new JournalRing(directory.resolve(ringName), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, journal, 1 << 20)) {
            ring.writeText(EventKind.START, startNs, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            for (int task = 1; task <= 2; task++) {
                ring.writeText(EventKind.TASK_OPEN, startNs, 0, task, task, task, 0, 0, "{\"name\":\""
                    + (task == 1 ? "camera" : "brake") + "\",\"priority\":" + 10 * task + ",\"deadline_ns\":0}");
            }
            for (int k = 1; k <= jobs; k++) {
                final long sampleNs = startNs + 10 * MS * k;
                job(ring, 1, sampleNs, sampleNs + MS, sampleNs);
                job(ring, 2, sampleNs + 2 * MS, sampleNs + 5 * MS, sampleNs);
            }
            agent.drain();
        }
    }

    private static void job(final JournalRing ring, final int task, final long releaseNs, final long endNs,
        final long stampNs) {
        job(ring, task, releaseNs, endNs, stampNs, 0);
    }

    private static void job(final JournalRing ring, final int task, final long releaseNs, final long endNs,
        final long stampNs, final long sample) {
        ring.write(EventKind.RELEASE, releaseNs, 0, 0, task, 0, task, task, releaseNs, stampNs, sample);
        ring.write(EventKind.JOB_END, endNs, 0, 0, task, 0, task, task, endNs, endNs - releaseNs, 0);
    }

    private TaskSet set() throws Exception {
        return new TaskSetReader().read(Files.writeString(directory.resolve("set.yaml"), """
            version: 1
            id: two-runs
            platform: {cpus: 2}
            tasks:
              - {name: camera, cpu: 1, period: 10ms, max_period: 11ms, priority: 20, segments: [{cpu: 1ms}]}
              - {name: brake, cpu: 2, period: 10ms, max_period: 11ms, priority: 10, segments: [{cpu: 3ms}]}
            chains:
              - {name: stop, tasks: [camera, brake], edges: [sampling], reaction: 40ms, age: 40ms}
            """));
    }

    @Test
    void shouldGiveNoReactionTimeAcrossTheGapBetweenTwoRunsOfTheDaemon() throws Exception {
        final Path journal = directory.resolve("journal");
        run("ring1", journal, SECOND, 5);
        run("ring2", journal, 60 * SECOND, 5);
        final Trace trace = TraceBuilder.read(Source.open(journal));
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(10, seen.outputs().size());
        assertEquals(15 * MS, seen.maxReactionNs(), "a period and 5 ms");
        assertEquals(5 * MS, seen.maxAgeNs());
        assertEquals(List.of(true, false, false, false, false, true, false, false, false, false),
            seen.outputs().stream().map(output -> output.reactionNs() < 0).toList(), "the first of each run");
        assertEquals(List.of(), TraceCheck.of(trace, set(), null, 0).findings(),
            "no chain limit, period or max_period is broken by the gap");
    }

    @Test
    void shouldGiveTheReactionTimeOfALateOutputWithinARun() throws Exception {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, journal, 1 << 20)) {
            ring.writeText(EventKind.START, SECOND, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            ring.writeText(EventKind.TASK_OPEN, SECOND, 0, 2, 2, 2, 0, 0, "{\"name\":\"brake\",\"priority\":10}");
            job(ring, 2, SECOND + 10 * MS, SECOND + 12 * MS, SECOND + 9 * MS);
            job(ring, 2, SECOND + 80 * MS, SECOND + 82 * MS, SECOND + 79 * MS);
            agent.drain();
        }
        final TraceChains.Seen seen = TraceChains.of(TraceBuilder.read(Source.open(journal)), set()).get(0);
        assertEquals(73 * MS, seen.maxReactionNs());
    }

    /** Writes a journal in which the tasks of these names are open, with jobs, and reads it. */
    private Trace trace(final List<String> tasks, final Consumer<JournalRing> jobs) throws Exception {
        return trace(tasks, 10 * MS, jobs);
    }

    private Trace trace(final List<String> tasks, final long periodNs, final Consumer<JournalRing> jobs)
        throws Exception {
        final Path journal = directory.resolve("journal");
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
            JournalAgent agent = new JournalAgent(ring, journal, 1 << 20)) {
            ring.writeText(EventKind.START, SECOND, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            for (int task = 1; task <= tasks.size(); task++) {
                ring.writeText(EventKind.TASK_OPEN, SECOND, 0, task, task, task, 0, 0, "{\"name\":\""
                    + tasks.get(task - 1) + "\",\"priority\":" + 10 * task + ",\"deadline_ns\":0,\"period_ns\":"
                    + periodNs + "}");
            }
            jobs.accept(ring);
            agent.drain();
        }
        return TraceBuilder.read(Source.open(journal));
    }

    private static long sampleNs(final int k) {
        return SECOND + 10 * MS * k;
    }

    /** How a process converts the stamp of a message: off by up to 0.1 ms. */
    private static long convertedNs(final Random random, final long stampNs) {
        return stampNs + random.nextLong(-100_000, 100_001);
    }

    private static List<Long> ages(final TraceChains.Seen seen) {
        return seen.outputs().stream().map(TraceChains.Output::ageNs).toList();
    }

    private static List<Long> reactions(final TraceChains.Seen seen) {
        return seen.outputs().stream().map(TraceChains.Output::reactionNs).toList();
    }

    @Test
    void shouldFindTheSamplesOfOutputsWhoseProcessConvertsTheStampsAnew() throws Exception {
        final Random random = new Random(20261128);
        final List<Long> trueAges = new ArrayList<>();
        final List<Long> trueReactions = new ArrayList<>();
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 1000; k++) {
                final long endNs = sampleNs(k) + 3 * MS + random.nextLong(5 * MS);
                job(ring, 1, sampleNs(k) + MS, sampleNs(k) + 2 * MS, convertedNs(random, sampleNs(k)));
                job(ring, 2, sampleNs(k) + 2 * MS, endNs, convertedNs(random, sampleNs(k)));
                trueAges.add(endNs - sampleNs(k));
                trueReactions.add(k == 1 ? -1 : endNs - sampleNs(k - 1));
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(1000, seen.outputs().size());
        assertEquals(0, seen.unmatched());
        assertEquals("", seen.problem());
        for (int k = 0; k < 1000; k++) {
            assertEquals(trueAges.get(k), seen.outputs().get(k).ageNs(), MS / 2.0);
            assertEquals(trueReactions.get(k), seen.outputs().get(k).reactionNs(), MS / 2.0);
        }
    }

    @Test
    void shouldSayWhichOutputsHaveNoSampleAndGiveNoReactionTimeAfterThem() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 6; k++) {
                if (k != 3) {   // the first task's job is missing
                    job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                }
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) - 40_000);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(List.of(5 * MS, 5 * MS, 5 * MS, 5 * MS, 5 * MS), ages(seen), "of the first task's stamps");
        assertEquals(List.of(-1L, 15 * MS, -1L, 15 * MS, 15 * MS), reactions(seen));
        assertEquals(1, seen.unmatched());
        assertEquals("1 of 6 outputs match no sample of task \"camera\"", seen.problem());
        assertEquals(1, TraceStats.json(trace, set()).path("chains").path(0).path("unmatched").asInt());
        final TraceCheck.Result checked = TraceCheck.of(trace, set(), null, 0);
        assertEquals(1, checked.chains().get(0).unmatched());
        assertTrue(checked.notes().contains("chain \"stop\": " + seen.problem()), checked.notes()::toString);
    }

    @Test
    void shouldCountOutputsOfAClockThatJumpsAndFindThoseAfterIt() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 8; k++) {
                // a message under way when the node's clock is set: its age is wrong by as much, this way or that
                final long jumpNs = k == 3 ? 700 * MS : k == 6 ? -700 * MS : 0;
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) + 30 + jumpNs);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals("2 of 8 outputs match no sample of task \"camera\"", seen.problem());
        assertEquals(List.of(-1L, 15 * MS, -1L, 15 * MS, -1L, 15 * MS), reactions(seen));
        assertEquals(5 * MS, seen.maxAgeNs());
    }

    @Test
    void shouldTakeNoSampleThatIsNewerThanTheOutput() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            job(ring, 1, sampleNs(1), sampleNs(1) + MS, sampleNs(1));
            job(ring, 2, sampleNs(2) - 2 * MS, sampleNs(2) - MS, sampleNs(2) - 100);   // 9.9 ms after sample 1
            job(ring, 1, sampleNs(2), sampleNs(2) + MS, sampleNs(2));
        });
        assertEquals("1 of 1 outputs match no sample of task \"camera\"",
            TraceChains.of(trace, set()).get(0).problem());
    }

    @Test
    void shouldCountAnOutputWithTheLatestStampThatThereIs() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            job(ring, 1, sampleNs(1), sampleNs(1) + MS, sampleNs(1));
            job(ring, 2, sampleNs(1) + 2 * MS, sampleNs(1) + 3 * MS, Long.MAX_VALUE);
        });
        assertEquals(1, TraceChains.of(trace, set()).get(0).unmatched());
    }

    @Test
    void shouldLeaveOutputsHalfAPeriodFromTwoSamplesToNeither() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            job(ring, 1, sampleNs(1), sampleNs(1) + MS, sampleNs(1));
            job(ring, 1, sampleNs(2), sampleNs(2) + MS, sampleNs(2));
            job(ring, 2, sampleNs(2), sampleNs(2) + 2 * MS, sampleNs(1) + 5 * MS);
            job(ring, 2, sampleNs(2) + 3 * MS, sampleNs(2) + 4 * MS, sampleNs(1) + 5 * MS - 1);
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(1, seen.unmatched());
        assertEquals(List.of(14 * MS), ages(seen));
    }

    @Test
    void shouldTakeThePeriodOfTheTaskSetWhereTheProgramDeclaresNone() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), 0, ring -> {
            for (int k = 1; k <= 3; k++) {
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) + 77);
            }
            job(ring, 2, sampleNs(8), sampleNs(9), sampleNs(8));
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(List.of(5 * MS, 5 * MS, 5 * MS), ages(seen));
        assertEquals("1 of 4 outputs match no sample of task \"camera\"", seen.problem());
    }

    @Test
    void shouldGiveSeveralOutputsOfOneSampleOneReactionTimeHoweverTheirStampsDiffer() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 3; k++) {
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 3 * MS, sampleNs(k) - 60_000);
                job(ring, 2, sampleNs(k) + 6 * MS, sampleNs(k) + 7 * MS, sampleNs(k) + 60_000);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(List.of(-1L, -1L, 13 * MS, -1L, 13 * MS, -1L), reactions(seen));
        assertEquals(List.of(3 * MS, 7 * MS, 3 * MS, 7 * MS, 3 * MS, 7 * MS), ages(seen));
    }

    @Test
    void shouldTakeTheReactionTimeFromTheSampleOfTheOutputBeforeWhereSamplesAreOverwritten() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 9; k++) {
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                if (k % 3 == 0) {   // three samples to an output
                    job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) - 90_000);
                }
            }
        });
        assertEquals(List.of(-1L, 35 * MS, 35 * MS), reactions(TraceChains.of(trace, set()).get(0)));
    }

    /** Two chains that end in the same task. */
    private TaskSet twoChains() throws Exception {
        return new TaskSetReader().read(Files.writeString(directory.resolve("two.yaml"), """
            version: 1
            id: two-chains
            platform: {cpus: 3}
            tasks:
              - {name: camera, cpu: 1, period: 10ms, max_period: 11ms, priority: 30, segments: [{cpu: 1ms}]}
              - {name: lidar, cpu: 2, period: 10ms, max_period: 11ms, priority: 20, segments: [{cpu: 1ms}]}
              - {name: brake, cpu: 3, period: 10ms, max_period: 11ms, priority: 10, segments: [{cpu: 3ms}]}
            chains:
              - {name: see, tasks: [camera, brake], edges: [sampling], reaction: 40ms, age: 40ms}
              - {name: feel, tasks: [lidar, brake], edges: [sampling], reaction: 40ms, age: 40ms}
            """));
    }

    /** The lidar samples 3 ms after the camera; brake's outputs are in turn of the one and of the other. */
    private static void inTurn(final JournalRing ring, final long offNs) {
        for (int k = 1; k <= 10; k++) {
            final boolean camera = k % 2 == 1;
            job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
            job(ring, 2, sampleNs(k) + 3 * MS, sampleNs(k) + 4 * MS, sampleNs(k) + 3 * MS);
            job(ring, 3, sampleNs(k) + 5 * MS, sampleNs(k) + 6 * MS, sampleNs(k) + (camera ? 0 : 3 * MS) + offNs);
        }
    }

    @Test
    void shouldGiveEachOutputToTheChainOfTheNearerSample() throws Exception {
        final List<String> tasks = List.of("camera", "lidar", "brake");
        for (final long offNs : List.of(0L, 80_000L, -80_000L)) {
            final Trace trace = trace(tasks, ring -> inTurn(ring, offNs));
            final List<TraceChains.Seen> seen = TraceChains.of(trace, twoChains());
            assertEquals(List.of(6 * MS, 6 * MS, 6 * MS, 6 * MS, 6 * MS), ages(seen.get(0)));
            assertEquals(List.of(3 * MS, 3 * MS, 3 * MS, 3 * MS, 3 * MS), ages(seen.get(1)));
            assertEquals(List.of("", ""), seen.stream().map(TraceChains.Seen::problem).toList());
            clear();
        }
    }

    @Test
    void shouldLeaveOutWhatCarriesTheStampsOfATaskOutsideTheChain() throws Exception {
        final Trace trace = trace(List.of("camera", "lidar", "brake"), ring -> inTurn(ring, 0));
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);   // knows no lidar
        assertEquals(List.of(6 * MS, 6 * MS, 6 * MS, 6 * MS, 6 * MS), ages(seen));
        assertEquals(List.of(-1L, 26 * MS, 26 * MS, 26 * MS, 26 * MS), reactions(seen));
        assertEquals("5 outputs carry stamps of task \"lidar\", which is not in the chain, and are left out",
            seen.problem());
    }

    @Test
    void shouldNotMindATaskOutsideTheChainThatHasTheSameMessages() throws Exception {
        final Trace trace = trace(List.of("camera", "logger", "brake"), ring -> {
            for (int k = 1; k <= 10; k++) {
                final long stampNs = sampleNs(k) + 50_000;   // brake and logger are of one process, which converts once
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k));
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 3 * MS, stampNs);
                job(ring, 3, sampleNs(k) + 4 * MS, sampleNs(k) + 5 * MS, stampNs);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(10, seen.outputs().size());
        assertEquals("", seen.problem());
    }

    @Test
    void shouldGoByWhatTheMessagesSayHoweverFarTheStampsAreApart() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 8; k++) {
                // 6 ms: nearer to another sample; 700 ms: the clock was set while the message was under way
                final long offNs = k == 3 ? 700 * MS : k == 5 ? -700 * MS : k % 2 == 0 ? 6 * MS : -6 * MS;
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k), -k);
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) + offNs, -k);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals(List.of(5 * MS), ages(seen).stream().distinct().toList());
        assertEquals(List.of(-1L, 15 * MS), reactions(seen).stream().distinct().toList());
        assertEquals(8, seen.outputs().size());
        assertEquals("", seen.problem());
    }

    @Test
    void shouldGiveAMessageOfAnUnknownSampleToNoNeighbourOfIt() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 4; k++) {
                if (k != 2) {
                    job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k), k);
                }
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, k == 2 ? sampleNs(1) : sampleNs(k) + 1, k);
            }
        });
        final TraceChains.Seen seen = TraceChains.of(trace, set()).get(0);
        assertEquals("1 of 4 outputs match no sample of task \"camera\"", seen.problem());
        assertEquals(List.of(-1L, -1L, 15 * MS), reactions(seen));
    }

    @Test
    void shouldGoByTimeWhereOneOfTheTwoDoesNotSayWhichSampleItHas() throws Exception {
        for (final boolean first : List.of(true, false)) {
            final Trace trace = trace(List.of("camera", "brake"), ring -> {
                for (int k = 1; k <= 4; k++) {
                    job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k), first ? k : 0);
                    job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) + 88, first ? 0 : k);
                }
            });
            assertEquals(List.of(-1L, 15 * MS, 15 * MS, 15 * MS), reactions(TraceChains.of(trace, set()).get(0)));
            clear();
        }
    }

    @Test
    void shouldTellTheRoundsApartOfMessagesThatArePlayedAgain() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring -> {
            for (int k = 1; k <= 9; k++) {
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k), 1 + k % 3);
                job(ring, 2, sampleNs(k) + 2 * MS, sampleNs(k) + 5 * MS, sampleNs(k) + 6 * MS, 1 + k % 3);
            }
        });
        assertEquals(List.of(5 * MS), ages(TraceChains.of(trace, set()).get(0)).stream().distinct().toList());
    }

    @Test
    void shouldGiveEachOutputToTheChainOfItsSampleByName() throws Exception {
        final Trace trace = trace(List.of("camera", "lidar", "brake"), ring -> {
            for (int k = 1; k <= 10; k++) {
                final int of = k % 2;   // both sample at once, and brake's stamps are the same for either
                job(ring, 1, sampleNs(k), sampleNs(k) + MS, sampleNs(k), 2 * k);
                job(ring, 2, sampleNs(k), sampleNs(k) + MS, sampleNs(k), 2 * k + 1);
                job(ring, 3, sampleNs(k) + 2 * MS, sampleNs(k) + (3 + of) * MS, sampleNs(k), 2 * k + of);
            }
        });
        final List<TraceChains.Seen> seen = TraceChains.of(trace, twoChains());
        assertEquals(List.of(3 * MS, 3 * MS, 3 * MS, 3 * MS, 3 * MS), ages(seen.get(0)));
        assertEquals(List.of(4 * MS, 4 * MS, 4 * MS, 4 * MS, 4 * MS), ages(seen.get(1)));
        assertEquals(List.of("", ""), seen.stream().map(TraceChains.Seen::problem).toList());
    }

    @Test
    void shouldShowStampAndSampleInTheExport() throws Exception {
        final Trace trace = trace(List.of("camera", "brake"), ring ->
            job(ring, 1, sampleNs(1), sampleNs(1) + MS, sampleNs(1) - 1, -1));
        final Map<String, Object> shown = Timeline.of(trace).slices.stream()
            .filter(slice -> slice.name().equals("job 1")).findFirst().orElseThrow().arguments();
        assertEquals(sampleNs(1) - 1, shown.get("stamp_ns"));
        assertEquals("18446744073709551615", shown.get("sample"));
    }

    @Test
    void shouldTellTheRowsOfARecordingWhoTookTheSample() throws Exception {
        trace(List.of("camera", "brake"), ring -> {
            job(ring, 1, sampleNs(1), sampleNs(1) + MS, sampleNs(1), 7);
            job(ring, 2, sampleNs(1) + 2 * MS, sampleNs(1) + 5 * MS, sampleNs(1) + 50, 7);
            job(ring, 1, sampleNs(2), sampleNs(2) + MS, sampleNs(2));
            job(ring, 2, sampleNs(2) + 2 * MS, sampleNs(2) + 5 * MS, sampleNs(2));   // older libraries say no more
        });
        final List<String> sources = new ArrayList<>();
        RecordingRows.read(Source.open(directory.resolve("journal")), new RecordingRows.Sink() {
            @Override
            public void job(final RecordingRows.Job job) {
                sources.add(job.task() + " of " + job.source());
            }

            @Override
            public void segment(final RecordingRows.Segment segment) {
            }

            @Override
            public void decision(final RecordingRows.Decision decision) {
            }
        });
        assertEquals(List.of("camera of camera", "brake of camera", "camera of camera", "brake of camera"), sources);
    }

    private void clear() throws Exception {
        try (var files = Files.walk(directory)) {
            for (final Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                if (!file.equals(directory)) {
                    Files.delete(file);
                }
            }
        }
    }
}
