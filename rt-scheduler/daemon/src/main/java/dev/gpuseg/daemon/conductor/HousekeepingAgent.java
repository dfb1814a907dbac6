/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.platform.Epoll;
import dev.gpuseg.ipc.platform.EventFd;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.function.Consumer;
import org.agrona.concurrent.Agent;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;

/**
 * Makes, ends and deletes the cycles of all clients' queues, and closes what gone clients leave. A thread of its own,
 * so that neither a slow admission test nor a burst of registrations delays a roll. Sleeps unless asked.
 */
public final class HousekeepingAgent implements Agent {
    private static final int IDLE_MS = 100;
    private static final int RETRY_MS = 1;

    private final Queue<Runnable> commands = new ManyToOneConcurrentLinkedQueue<>();
    private final EventFd wake = new EventFd();
    private final Epoll epoll = new Epoll(1);
    private final List<Client> clients = new ArrayList<>();
    private int timeoutMs = IDLE_MS;

    /** An agent without clients. */
    public HousekeepingAgent() {
        epoll.add(wake.fd(), Epoll.IN, 0);
    }

    /** Asks for a look at all queues. Any thread, allocates nothing; made by the dispatcher three times per cycle. */
    public void wake() {
        wake.signal();
    }

    /** From now on the client's queue is looked after. Any thread. */
    void add(final Client client) {
        commands.add(() -> clients.add(client));
        wake.signal();
    }

    /**
     * The dispatcher has let go of a client: close and delete all of it. Any thread.
     *
     * @param client the client
     * @param done   called on this agent's thread with null, or with what went wrong
     */
    void retire(final Client client, final Consumer<RuntimeException> done) {
        commands.add(() -> {
            clients.remove(client);
            RuntimeException failure = null;
            for (final AutoCloseable part : List.of(client.queue(), client.session(), client.doorbell())) {
                try {
                    part.close();
                } catch (final RuntimeException e) {
                    failure = e;
                } catch (final Exception e) {
                    failure = new IllegalStateException(e);
                }
            }
            done.accept(failure);
        });
        wake.signal();
    }

    @Override
    public int doWork() {
        if (epoll.await(timeoutMs) > 0) {
            wake.drain();
        }
        int work = 0;
        Runnable command = commands.poll();
        while (command != null) {
            command.run();
            work++;
            command = commands.poll();
        }
        timeoutMs = IDLE_MS;
        for (int i = 0; i < clients.size(); i++) {
            try {
                if (clients.get(i).queue().housekeep()) {
                    timeoutMs = RETRY_MS;
                }
            } catch (final InternalError e) {
                timeoutMs = RETRY_MS; // a truncated file's fault, late: its queue has noticed or will by its size
            }
        }
        return work;
    }

    @Override
    public String roleName() {
        return "gpuseg-housekeeping";
    }

    /**
     * Runs what was still asked for, then lets go of its descriptors. Clients that were not retired stay as they are.
     */
    @Override
    public void onClose() {
        Runnable command = commands.poll();
        while (command != null) {
            command.run();
            command = commands.poll();
        }
        epoll.close();
        wake.close();
    }
}
