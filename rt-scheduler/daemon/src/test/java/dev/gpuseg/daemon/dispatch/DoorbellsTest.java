/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.ipc.platform.EventFd;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A wait that nothing ends would take longer than the test may. */
@Timeout(20)
class DoorbellsTest {
    private static final int HANG_MS = 60_000;

    private final Doorbells bells = new Doorbells();

    @AfterEach
    void close() {
        bells.close();
    }

    private static Client client(final int id) {
        return new Client(id, 1, 0, 0, 1, "client", null, null, new EventFd());
    }

    @Test
    void shouldMakeNoSystemCallForADispatcherThatIsAwake() {
        bells.ring();
        assertFalse(rang(), "no bell rang");
    }

    @Test
    void shouldWakeADispatcherThatHasAnnouncedItsSleep() {
        bells.announceSleep();
        bells.ring();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang(), "and be silent then");
        bells.endSleep();
        bells.ring();
        assertFalse(rang(), "it is awake");
    }

    @Test
    void shouldWakeTheNextSleepForAStop() {
        bells.ringAlways();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang());
    }

    @Test
    void shouldNeverReadABellThatAClientCouldMakeBlocking() {
        final Client client = client(1);
        bells.add(client);
        client.doorbell().signal();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang(), "one ring wakes once");
        client.doorbell().signal();
        assertEquals(1, bells.await(HANG_MS), "and the next one again");
        assertEquals(2, client.doorbell().drain(), "both are unread");
        bells.remove(client);
        client.doorbell().close();
    }

    @Test
    void shouldListenToClientsUntilTheyAreRemoved() {
        final Client first = client(1);
        final Client second = client(2);
        bells.add(first);
        bells.add(second);
        second.doorbell().signal();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang(), "one ring wakes once");
        bells.remove(second);
        second.doorbell().signal();
        assertFalse(rang());
        first.doorbell().signal();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang());
        first.doorbell().close();
        assertTrue(second.doorbell().drain() > 0, "it was not read");
        second.doorbell().close();
    }

    @Test
    void shouldNotTakeAClientForTheOneThatHadItsIdBefore() {
        final Client former = client(1);
        bells.add(former);
        bells.remove(former);
        final Client present = client(1);
        bells.add(present);
        present.doorbell().signal();
        assertEquals(1, bells.await(HANG_MS));
        assertFalse(rang(), "or it would wake the dispatcher for ever");
        former.doorbell().close();
        present.doorbell().close();
    }

    private boolean rang() {
        return bells.await(0) > 0;
    }
}
