/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.journal.EventKind;
import dev.gpuseg.ipc.journal.JournalAgent;
import dev.gpuseg.ipc.journal.JournalRing;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LedgerTest {
    private static final int PID = 4711;
    private static final int CLIENT = 5;

    @TempDir
    private Path directory;
    private JournalRing ring;
    private JournalAgent agent;
    private Ledger ledger;

    @BeforeEach
    void open() {
        ring = new JournalRing(directory.resolve("ring"), 1 << 16);
        agent = new JournalAgent(ring, directory.resolve("journal"), 1 << 20);
        ledger = new Ledger(directory.resolve("journal"));
    }

    @AfterEach
    void close() {
        ledger.close();
        agent.close();
        ring.close();
    }

    private void event(final EventKind kind, final int client, final long arg0) {
        assertTrue(ring.write(kind, 1, 0, 0, 1, 0, 1, client, arg0, 0, 0));
        agent.drain();
    }

    private ProgressPage page(final String name, final long begins) throws Exception {
        final ByteBuffer bytes = ByteBuffer.allocate(Abi.Progress.SIZE).order(ByteOrder.nativeOrder());
        bytes.putInt(Abi.Progress.PID_OFFSET, PID).putLong(Abi.Progress.BEGINS_OFFSET, begins);
        return new ProgressPage(Files.write(directory.resolve(name), bytes.array()));
    }

    private long missing() {
        ledger.ask();
        return ledger.missing();
    }

    @Test
    void shouldMissWhatASecondProcessOfTheSamePidHasAndTheJournalHasNot() throws Exception {
        event(EventKind.CLIENT_OPEN, CLIENT, PID);
        event(EventKind.BEGIN, CLIENT, 0);
        event(EventKind.BEGIN, CLIENT, 0);
        try (ProgressPage first = page("first", 2); ProgressPage second = page("second", 1)) {
            ledger.add(first);
            assertEquals(0, missing());
            ledger.remove(first);
            ledger.add(second);
            assertEquals(1, missing(), "what the first has recorded is no record of the second");
            event(EventKind.CLIENT_OPEN, CLIENT + 1, PID);
            event(EventKind.BEGIN, CLIENT + 1, 0);
            assertEquals(0, missing());
            ledger.remove(second);
        }
    }

    @Test
    void shouldKeepTheAccountWhileAnotherTaskOfThatPidIsCounted() throws Exception {
        event(EventKind.CLIENT_OPEN, CLIENT, PID);
        event(EventKind.BEGIN, CLIENT, 0);
        try (ProgressPage first = page("first", 1); ProgressPage second = page("second", 0)) {
            ledger.add(first);
            ledger.add(second);
            assertEquals(0, missing());
            ledger.exclude(PID);
            ledger.remove(first);
            assertFalse(ledger.hasLeft(PID));
            ledger.remove(second);
        }
    }

    @Test
    void shouldSayThatAClientHasLeftUntilItsPidRegistersAgain() {
        event(EventKind.CLIENT_OPEN, CLIENT, PID);
        assertFalse(ledger.hasLeft(PID));
        event(EventKind.CLIENT_CLOSE, CLIENT, 0);
        assertTrue(ledger.hasLeft(PID));
        event(EventKind.CLIENT_OPEN, CLIENT + 1, PID);
        assertFalse(ledger.hasLeft(PID));
        event(EventKind.CLIENT_POISON, CLIENT + 1, 0);
        assertTrue(ledger.hasLeft(PID));
    }
}
