/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.ipc.platform.EventFd;
import java.util.Queue;
import org.agrona.concurrent.ManyToOneConcurrentLinkedQueue;

/**
 * Hands answers to the conductor through a queue that is never full, and wakes it. Any thread may call; the conductor's
 * thread takes them with {@link #drain}.
 */
final class QueuedConductorProxy implements ConductorProxy {
    /** What the conductor does with the answers, on its own thread. */
    interface Receiver {
        void onTaskOpened(long correlation, int status, int taskId, int slot, String text);

        void onTaskClosed(long correlation, int status, String text);

        void onPoisoned(int clientId, int code, String text);

        void onClientRemoved(int clientId);

        void onAdminReply(long correlation, int status, String json);
    }

    private final Queue<Runnable> commands = new ManyToOneConcurrentLinkedQueue<>();
    private final EventFd wake;
    private final Receiver receiver;

    QueuedConductorProxy(final EventFd wake, final Receiver receiver) {
        this.wake = wake;
        this.receiver = receiver;
    }

    void execute(final Runnable command) {
        commands.add(command);
        wake.signal();
    }

    int drain() {
        int n = 0;
        Runnable command = commands.poll();
        while (command != null) {
            command.run();
            n++;
            command = commands.poll();
        }
        return n;
    }

    @Override
    public void taskOpened(final long correlation, final int status, final int taskId, final int slot,
        final String text) {
        execute(() -> receiver.onTaskOpened(correlation, status, taskId, slot, text));
    }

    @Override
    public void taskClosed(final long correlation, final int status, final String text) {
        execute(() -> receiver.onTaskClosed(correlation, status, text));
    }

    @Override
    public void poisoned(final int clientId, final int code, final String text) {
        execute(() -> receiver.onPoisoned(clientId, code, text));
    }

    @Override
    public void clientRemoved(final int clientId) {
        execute(() -> receiver.onClientRemoved(clientId));
    }

    @Override
    public void adminReply(final long correlation, final int status, final String json) {
        execute(() -> receiver.onAdminReply(correlation, status, json));
    }
}
