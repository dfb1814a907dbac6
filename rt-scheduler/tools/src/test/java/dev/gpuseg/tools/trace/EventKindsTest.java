/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class EventKindsTest {
    private static final long MS = 1_000_000L;

    @TempDir
    private Path directory;

    private String recording(final EventKind kind) {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 20);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 24)) {
            ring.writeText(EventKind.START, 0, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            ring.writeText(EventKind.TASK_OPEN, 0, 0, 1, 1, 1, 0, 0, "{\"name\":\"control\",\"priority\":10,"
                + "\"period_ns\":10000000,\"deadline_ns\":5000000}");
            Recordings.job(ring, 1, MS, 3 * MS);
            ring.write(kind, 6 * MS, 0, 0, 1, 0, 1, 1, 6 * MS, 5 * MS, 0);
            Recordings.job(ring, 2, 11 * MS, 3 * MS);
            agent.drain();
        }
        return directory.resolve("journal").toString();
    }

    @Test
    void shouldReadARecordingInWhichABoundWasExceeded() {
        final StringOutput stats = StringOutput.of("trace", "stats", recording(EventKind.BOUND));
        assertEquals(ExitCode.OK, stats.status(), stats.text());
    }

    @ParameterizedTest
    @EnumSource
    void shouldKnowEveryKindOfEvent(final EventKind kind) {
        final StringOutput stats = StringOutput.of("trace", "stats", recording(kind));
        assertFalse(stats.text().contains("is not handled"), stats.text());
    }
}
