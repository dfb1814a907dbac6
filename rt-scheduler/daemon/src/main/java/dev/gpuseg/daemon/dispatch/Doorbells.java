/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.daemon.conductor.Client;
import dev.gpuseg.daemon.enforce.SleepFlag;
import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.EventFd;

/**
 * What wakes the dispatcher: its own bell for threads of this process, and one for each client. Dispatcher thread only,
 * unless said otherwise; sleeping and waking allocate nothing.
 */
final class Doorbells implements AutoCloseable {
    private static final int EVENTS_MAX = 64;
    /** Clients have their ids, from 1. */
    private static final int OWN = 0;

    private final EventFd own = new EventFd();
    private final Epoll epoll = new Epoll(EVENTS_MAX);
    private final SleepFlag sleeping = new SleepFlag();

    Doorbells() {
        epoll.add(own.fd(), Epoll.IN, OWN);
    }

    /** Wakes the dispatcher if it sleeps. Any thread, after it has published what is to be seen. */
    void ring() {
        if (sleeping.mustWake()) {
            own.signal();
        }
    }

    /** Wakes the dispatcher from this sleep or the next. Any thread. */
    void ringAlways() {
        own.signal();
    }

    /**
     * Listens to a client. Its bell is never read: the client shares the open file, so it can make it blocking and
     * empty it before this thread reads, which would then wait for ever. Every ring is an edge; the counter only grows.
     */
    void add(final Client client) {
        epoll.add(client.doorbell().fd(), Epoll.IN | Epoll.EDGE, client.clientId());
    }

    /** Does not listen to a client any more; its bell may be closed then. */
    void remove(final Client client) {
        epoll.remove(client.doorbell().fd());
    }

    /** The dispatcher is going to sleep: {@link #ring} wakes it. It has to look for work once more before it does. */
    void announceSleep() {
        sleeping.announce();
    }

    /** The dispatcher is awake. */
    void endSleep() {
        sleeping.clear();
    }

    /**
     * Sleeps until a bell rings: what it announced is looked at after this.
     *
     * @param timeoutMs how long at most
     * @return how many rang
     */
    int await(final int timeoutMs) {
        final int ready = epoll.await(timeoutMs);
        for (int i = 0; i < ready; i++) {
            if (epoll.token(i) == OWN) {
                own.drain();   // no other process has this one
            }
        }
        return ready;
    }

    @Override
    public void close() {
        epoll.close();
        own.close();
    }
}
