/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Chains in a journal that holds several runs of a daemon. */
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
        ring.write(EventKind.RELEASE, releaseNs, 0, 0, task, 0, task, task, releaseNs, stampNs, 0);
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
}
