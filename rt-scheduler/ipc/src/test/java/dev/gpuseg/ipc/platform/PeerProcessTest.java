/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PeerProcessTest {
    private static final long TICK_NS = 10_000_000L;
    private static final int LIMIT_MS = 30_000;

    @TempDir
    private Path directory;

    private static PeerProcess of(final PidFd handle, final boolean bound) {
        return new PeerProcess(new PeerCredentials(ProcessStatus.pid(), 0, 0), List.of(), handle, bound);
    }

    @Test
    void shouldKnowNothingOfAPeerThatCannotBeTold() {
        try (PeerProcess none = of(null, false); PeerProcess young = of(PidFd.open(ProcessStatus.pid()), false);
            PeerProcess known = of(PidFd.open(ProcessStatus.pid()), true)) {
            assertEquals("unknown", none.about(pid -> "fact", "unknown"));
            assertEquals("unknown", young.about(pid -> "fact", "unknown"));
            assertEquals("fact", known.about(pid -> "fact", "unknown"));
        }
    }

    @Test
    void shouldNotBelieveWhatWasReadWhenThePeerEnded() throws Exception {
        final Process process = new ProcessBuilder("/bin/sleep", "60").start();
        try (PeerProcess peer = of(PidFd.open((int) process.pid()), true)) {
            assertEquals("fact", peer.about(pid -> "fact", "unknown"));
            assertEquals("unknown", peer.about(pid -> {
                process.destroyForcibly().onExit().join();
                return "fact";
            }, "unknown"));
        }
    }

    /** Linux before 6.5. */
    @Test
    void shouldBelieveAPidIfItsProcessIsOlderThanTheConnection() {
        assertTrue(PeerProcess.isOlder(99, 100 * TICK_NS));
        assertFalse(PeerProcess.isOlder(99, 100 * TICK_NS - 1), "it may have started within the tick");
        assertFalse(PeerProcess.isOlder(0, 100 * TICK_NS), "it has ended");
        assertTrue(PeerProcess.isOlder(ProcessStatus.startTicks(ProcessStatus.pid()), ClockReading.bootNs()));
    }

    @Test
    void shouldTakeHoldOfThePeerAndKnowItsGroups() throws IOException {
        final Path path = directory.resolve("socket");
        try (SeqPacketSocket listener = SeqPacketSocket.listen(path, 1);
            SeqPacketSocket client = SeqPacketSocket.connect(path, LIMIT_MS);
            SeqPacketSocket accepted = listener.accept(); PeerProcess peer = PeerProcess.of(accepted, 0)) {
            assertEquals(ProcessStatus.pid(), peer.credentials().pid());
            assertFalse(peer.handle().isDead());
            final String line = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(text -> text.startsWith("Groups:")).findFirst().orElseThrow().substring("Groups:".length());
            assertEquals(Stream.of(line.split("\\s+")).filter(word -> !word.isEmpty()).map(Integer::parseUnsignedInt)
                .toList(), peer.groups());
            assertTrue(client.fd() >= 0);
        }
    }
}
