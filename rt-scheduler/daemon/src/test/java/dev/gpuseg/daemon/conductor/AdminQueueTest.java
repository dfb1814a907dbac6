/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.PeerCredentials;
import dev.gpuseg.ipc.platform.PeerProcess;
import java.util.List;
import org.junit.jupiter.api.Test;

class AdminQueueTest {
    private static final int ALICE = 1;
    private static final int BOB = 2;

    private final AdminQueue queue = new AdminQueue();
    private long correlation;

    private AdminQueue.Waiting command(final int uid, final String json) {
        final PeerProcess peer = new PeerProcess(new PeerCredentials(1, uid, 1), List.of(), null, false);
        return new AdminQueue.Waiting(++correlation, new Connection(1, null, peer, uid), json);
    }

    @Test
    void shouldAnswerOneCommandOfAUserAtATime() {
        queue.offer(command(ALICE, "first"));
        queue.offer(command(ALICE, "second"));
        assertEquals("first", queue.next().json());
        assertNull(queue.next());
        queue.finished(1);
        assertEquals("second", queue.next().json());
    }

    @Test
    void shouldLetUsersTakeTurns() {
        for (int i = 0; i < 3; i++) {
            queue.offer(command(ALICE, "alice"));
        }
        queue.offer(command(BOB, "bob"));
        final AdminQueue.Waiting alice = queue.next();
        assertEquals("alice", alice.json());
        final AdminQueue.Waiting bob = queue.next();
        assertEquals("bob", bob.json());
        assertNull(queue.next(), "two are in progress");
        queue.finished(bob.correlation());
        assertNull(queue.next(), "bob wants nothing, alice has one in progress");
        queue.finished(alice.correlation());
        assertEquals("alice", queue.next().json());
    }

    @Test
    void shouldBoundWhatWaitsForEachUserAndInAll() {
        for (int i = 0; i < AdminQueue.WAITING_PER_USER; i++) {
            assertTrue(queue.offer(command(ALICE, "{}")));
        }
        assertFalse(queue.offer(command(ALICE, "{}")));
        for (int uid = BOB; queue.size() < AdminQueue.WAITING_MAX; uid++) {
            for (int i = 0; i < AdminQueue.WAITING_PER_USER && queue.size() < AdminQueue.WAITING_MAX; i++) {
                assertTrue(queue.offer(command(uid, "{}")));
            }
        }
        assertFalse(queue.offer(command(99, "{}")));
    }

    @Test
    void shouldBoundTheTextsThatWait() {
        final String text = "x".repeat(65_000);
        int taken = 0;
        while (queue.offer(command(ALICE, text))) {
            taken++;
        }
        assertEquals(AdminQueue.BYTES_PER_USER / (2 * text.length()), taken);
        for (int uid = BOB; uid < 100; uid++) {
            while (queue.offer(command(uid, text))) {
                taken++;
            }
        }
        assertEquals(AdminQueue.BYTES_MAX / (2 * text.length()), taken);
    }

    @Test
    void shouldForgetCommandsOfClosedConnections() {
        final AdminQueue.Waiting gone = command(ALICE, "gone");
        queue.offer(gone);
        queue.offer(command(ALICE, "there"));
        gone.connection().open = false;
        assertEquals("there", queue.next().json());
        assertEquals(0, queue.size());
        queue.finished(gone.correlation());
        queue.finished(2);
        assertNull(queue.next());
    }
}
