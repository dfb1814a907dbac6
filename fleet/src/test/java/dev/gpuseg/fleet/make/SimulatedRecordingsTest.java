/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.fleet.make;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.fleet.engine.Engine;
import dev.gpuseg.fleet.engine.TestEngine;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.List;
import java.util.zip.ZipFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A recording is a function of its plan, its number and the task sets, not of the part in which it is made. */
@Timeout(300)
class SimulatedRecordingsTest {
    @TempDir
    private Path directory;

    private SimulatedRecordings.Written make(final RecordingPlan plan, final int partitions) throws IOException {
        final Path sets = Path.of(System.getProperty("gpuseg.root"), "traces", "workloads");
        try (Engine engine = TestEngine.local(partitions)) {
            return new SimulatedRecordings(plan, sets).write(engine, directory.resolve("parts" + partitions));
        }
    }

    /** The events alone: the manifest beside them says when the file was made. */
    private byte[] events(final RecordingPlan plan, final int partitions, final int i) throws IOException {
        try (ZipFile zip = new ZipFile(directory.resolve("parts" + partitions).resolve(plan.path(i)).toFile());
            InputStream in = zip.getInputStream(zip.getEntry("events.bin"))) {
            return in.readAllBytes();
        }
    }

    @Test
    void shouldWriteTheSameEventsWhateverTheNumberOfParts() throws IOException {
        final RecordingPlan plan = new RecordingPlan(30, 13, List.of("1", "2"), 1, 20, 3, 11);
        final SimulatedRecordings.Written one = make(plan, 1);
        final SimulatedRecordings.Written seven = make(plan, 7);
        assertEquals(one.events(), seven.events());
        assertEquals(one.eventBytes(), seven.eventBytes());
        int compared = 0;
        for (int i = 0; i < plan.count(); i++) {
            if (!plan.isDamaged(i)) {
                assertArrayEquals(events(plan, 1, i), events(plan, 7, i), plan.path(i));
                compared++;
            }
        }
        assertEquals(27, compared);
    }
}
