/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.platform.NotifySocket;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

/**
 * Tells the supervisor (systemd) that the daemon is ready, alive and stopping. Alive means that the dispatcher's own
 * thread has answered: a process whose other threads run while its dispatcher hangs gets no sign of life, and the
 * supervisor starts another.
 */
public final class Supervision implements AutoCloseable {
    /** Signs of life per period that the supervisor allows. */
    private static final int SIGNS_PER_PERIOD = 3;

    /** Asks the dispatcher for an answer. */
    @FunctionalInterface
    public interface Pulse {
        /**
         * Waits for the dispatcher.
         *
         * @param limitNs how long, nanoseconds
         * @return true if it has answered
         * @throws InterruptedException if the waiting thread is interrupted
         */
        boolean answers(long limitNs) throws InterruptedException;
    }

    private final NotifySocket socket;
    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(task -> {
        final Thread t = new Thread(task, "gpuseg-supervision");
        t.setDaemon(true);
        return t;
    });

    /**
     * Says that the daemon is ready and begins to give signs of life, if that is wanted.
     *
     * @param socket to the supervisor; closed with this
     * @param pulse  of the dispatcher
     * @param status one line for people
     */
    public Supervision(final NotifySocket socket, final Pulse pulse, final String status) {
        this.socket = socket;
        socket.send("READY=1\nSTATUS=" + status.replace('\n', ' '));
        if (socket.watchdogNs() > 0) {
            final long intervalNs = socket.watchdogNs() / SIGNS_PER_PERIOD;
            thread.scheduleAtFixedRate(() -> beat(pulse, intervalNs), 0, intervalNs, TimeUnit.NANOSECONDS);
        }
    }

    private void beat(final Pulse pulse, final long limitNs) {
        try {
            if (pulse.answers(limitNs)) {
                socket.send("WATCHDOG=1");
            }
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();   // closing
        }
    }

    /** Says that the daemon stops. The second time, as after a stop by request, it does nothing. */
    @Override
    public synchronized void close() {
        if (thread.isShutdown()) {
            return;
        }
        thread.shutdownNow();
        socket.send("STOPPING=1");
        socket.close();
    }
}
