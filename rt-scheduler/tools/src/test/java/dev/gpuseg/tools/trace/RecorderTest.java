/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.trace;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import dev.gpuseg.tools.rig.StringOutput;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class RecorderTest {
    private static final int EVENTS = 20_000;
    private static final int ASKED_MS = 60;

    @TempDir
    private Path directory;

    @Test
    void shouldFollowForAsLongAsAskedAfterItHasReadWhatWasThere() throws Exception {
        try (JournalRing ring = new JournalRing(directory.resolve("ring"), 1 << 16);
            JournalAgent agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 24)) {
            ring.writeText(EventKind.START, 1, 0, 0, 0, 0, 0, 0, "{\"policy\":\"fp\",\"mechanism\":\"sim\"}");
            for (int i = 0; i < EVENTS; i++) {
                ring.write(EventKind.STALL, 2 + i, 0, 0, 0, 0, 0, 0, 0, 0, 0);
                if (i % 100 == 0) {
                    agent.drain();
                }
            }
            agent.drain();
        }
        final Path out = directory.resolve("followed.gpuseg");
        final StringOutput recorded = StringOutput.of("trace", "record", directory.resolve("journal").toString(),
            "--out", out.toString(), "--duration", ASKED_MS + "ms");
        assertEquals(ExitCode.OK, recorded.status(), recorded.text());
        final JsonNode manifest = Source.open(out).manifest();
        assertEquals(1, manifest.path("preface_events").asInt(), manifest::toString);
        final long followedNs = manifest.path("followed_ns").asLong();
        assertTrue(followedNs >= TimeUnit.MILLISECONDS.toNanos(ASKED_MS), followedNs + " ns");
        assertTrue(recorded.out().contains(" events in " + TimeUnit.NANOSECONDS.toMillis(followedNs) + " ms"),
            recorded.out());
    }
}
