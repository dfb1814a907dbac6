/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.analysis.io.Measurement;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Of 40 jobs under fp three take 12 ms, the others 3; of ten under rr all take 30. */
@Timeout(60)
class TraceMeasurementTest {
    private static final long MS = 1_000_000;

    @TempDir
    private Path directory;
    private JournalRing ring;

    private void job(final long releaseNs, final long responseNs) {
        ring.write(EventKind.RELEASE, releaseNs, 0, 0, 1, 0, 1, 1, releaseNs, 0, 0);
        ring.write(EventKind.JOB_END, releaseNs + responseNs, 0, 0, 1, 0, 1, 1, releaseNs + responseNs, responseNs, 0);
    }

    private Path journal(final boolean enforced) {
        final Path journal = directory.resolve(enforced ? "journal" : "unenforced");
        try (JournalRing opened = new JournalRing(directory.resolve("ring" + enforced), 1 << 18);
            JournalAgent agent = new JournalAgent(opened, journal, 1 << 20)) {
            ring = opened;
            ring.writeText(EventKind.START, MS, 0, 0, 0, 0, 0, 0, "{\"policy\":\"rr\",\"mechanism\":\"sim\","
                + "\"simulated\":true}");
            ring.writeText(EventKind.TASK_OPEN, MS, 0, 1, 1, 1, 0, 0, "{\"name\":\"camera\",\"priority\":10,"
                + "\"deadline_ns\":80000000}");
            for (int k = 0; k < 10; k++) {
                job((100 + 80 * k) * MS, 30 * MS);
            }
            if (enforced) {
                ring.writeText(EventKind.POLICY, 1_000 * MS, 0, 0, 0, 0, 0, 0, "policy fp");
                for (int k = 0; k < 40; k++) {
                    job((1_100 + 80 * k) * MS, k % 15 == 0 ? 12 * MS : 3 * MS);
                }
            }
            agent.drain();
        }
        return journal;
    }

    @Test
    void shouldCountEveryJobThatWasEnforced() throws Exception {
        final Measurement measured = TraceMeasurement.of(TraceBuilder.read(Source.open(journal(true))), "run");
        final Measurement.Figure camera = measured.byTask().get("camera");
        assertEquals(40, camera.jobs());
        assertEquals(12 * MS, camera.maxNs());
        assertTrue(camera.isExact() && measured.simulated());
        assertEquals(3, camera.above(9 * MS, 80 * MS));
        assertEquals(40, camera.above(2 * MS, 80 * MS));
        assertEquals(10, TraceMeasurement.of(TraceBuilder.read(Source.open(journal(false))), "run").jobs(),
            "nothing else ran");
    }

    @Test
    void shouldCompareARecordingWithTheBounds() throws Exception {
        final Path set = Files.writeString(directory.resolve("set.yaml"), "platform: {cpus: 1, epsilon: 1ms}\ntasks:\n"
            + "  - {name: camera, cpu: 1, period: 80ms, priority: 5, segments: [{cpu: 1ms}, {gpu: {host: 1ms, device: "
            + "5ms}}]}\n");
        final Path recording = Recordings.write(Recordings.events(journal(true)), directory.resolve("run.gpuseg"));
        for (final Path source : new Path[] {recording, directory.resolve("journal")}) {
            final StringOutput said = StringOutput.of("analyze", set.toString(), "--measured", source.toString());
            assertEquals(ExitCode.NO, said.status(), said.text());
            assertTrue(said.out().contains("verdict: CONTRADICTED BY THE MEASUREMENT: task \"camera\" took 12.0 ms, "
                + "its bound is 9.0 ms (3 of 40 jobs above their bound) (simulated measurement)\n"), said.out());
        }
        final Path broken = Files.writeString(directory.resolve("broken"), "PK but no recording");
        final StringOutput refused = StringOutput.of("analyze", set.toString(), "--measured", broken.toString());
        assertEquals(ExitCode.USAGE, refused.status(), refused.text());
        assertTrue(refused.text().contains("not a recording of gpuseg"), refused.text());
    }
}
