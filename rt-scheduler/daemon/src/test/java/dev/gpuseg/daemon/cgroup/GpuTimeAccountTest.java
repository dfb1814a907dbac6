/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Events go through a real ring and a real journal, as in the daemon. */
@Timeout(60)
class GpuTimeAccountTest {
    private static final long FAR_NS = 1_000_000_000_000L;

    @TempDir
    private Path directory;
    private JournalRing ring;
    private JournalAgent journal;
    private final GpuTimeAccount account = new GpuTimeAccount();

    @BeforeEach
    void open() {
        ring = new JournalRing(directory.resolve("ring"), JournalRing.DEFAULT_CAPACITY);
        journal = new JournalAgent(ring, directory.resolve("journal"), 16 << 20);
        journal.addTap(account);
        account.belongs(List.of(1), "/a", 0);
        account.belongs(List.of(2), "/b", 0);
        ring.writeText(EventKind.START, 0, 0, 0, 0, 0, 0, 0, "{}");
        task(11, 1, 0);
        task(12, 2, 0);
        task(13, 1, 50);
    }

    @AfterEach
    void close() {
        journal.close();
        ring.close();
    }

    private void task(final int id, final int context, final int priority) {
        ring.writeText(EventKind.TASK_OPEN, 0, 0, id, context, 1, priority, 0, "{}");
    }

    private void at(final long ns, final EventKind kind, final int task) {
        ring.write(kind, ns, 0, 0, task, 1, 0, 1, 0, 0, 0);
        journal.drain();
    }

    private GpuTimeAccount.Usage of(final String path) {
        return account.usage(0).stream().filter(usage -> usage.path().equals(path)).findFirst()
            .orElse(new GpuTimeAccount.Usage(path, 0, 0, 0, 0));
    }

    @Test
    void shouldCountFromGrantToEndWithoutPreemptedTime() {
        at(100, EventKind.GRANT, 13);
        at(200, EventKind.PREEMPT, 13);
        at(500, EventKind.RESUME, 13);
        at(600, EventKind.END, 13);
        assertEquals(new GpuTimeAccount.Usage("/a", 200, 0, 200, 2), of("/a"));
    }

    @Test
    void shouldDivideWhatSeveralHadTogether() {
        at(0, EventKind.GRANT, 11);
        at(100, EventKind.GRANT, 12);
        at(300, EventKind.END, 11);
        at(400, EventKind.CANCEL, 12);
        assertEquals(new GpuTimeAccount.Usage("/a", 200, 200, 300, 1), of("/a"));
        assertEquals(new GpuTimeAccount.Usage("/b", 200, 200, 300, 1), of("/b"));
    }

    @Test
    void shouldChargeTheNewGroupAfterAMove() {
        at(FAR_NS, EventKind.GRANT, 12);
        account.belongs(List.of(2), "/c", FAR_NS + 300_000_000L);
        at(FAR_NS + 500_000_000L, EventKind.TASK_CLOSE, 12);
        // what is newer than 0.1 s at the move may still be in the ring, and goes to the new group
        assertEquals(200_000_000L, of("/b").gpuNs());
        assertEquals(300_000_000L, of("/c").gpuNs());
    }

    @Test
    void shouldCountALongSegmentWhileItRuns() {
        at(FAR_NS, EventKind.GRANT, 12);
        assertEquals(900_000_000L, account.usage(FAR_NS + 1_000_000_000L).stream()
            .filter(usage -> usage.path().equals("/b")).findFirst().orElseThrow().gpuNs());
        at(FAR_NS + 1_000_000_000L, EventKind.END, 12);
        assertEquals(1_000_000_000L, of("/b").gpuNs());
    }

    @Test
    void shouldChargeAHintedTaskAsRealTimeFromThenOn() {
        at(0, EventKind.GRANT, 11);
        ring.write(EventKind.POLICY, 100, 0, 0, 11, 0, 1, 1, 70, 70, 0);
        at(300, EventKind.END, 11);
        assertEquals(new GpuTimeAccount.Usage("/a", 300, 100, 300, 1), of("/a"));
    }

    @Test
    void shouldNotGuessAcrossLostEvents() {
        at(100, EventKind.GRANT, 11);
        journal.removeTap(account);
        at(200, EventKind.END, 11);
        journal.addTap(account);
        at(1_000_000, EventKind.GRANT, 12);
        at(1_000_100, EventKind.END, 12);
        assertEquals(1, account.gaps());
        assertEquals(0, of("/a").gpuNs());
        assertEquals(100, of("/b").gpuNs());
    }
}
