/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.journal.JournalAgent;
import java.util.concurrent.locks.LockSupport;

/** The journal's thread: appends what is in the ring, then rests; no thread waits for it. */
final class JournalRunner implements Runnable {
    private static final long REST_NS = 1_000_000;
    private static final long LONG_REST_NS = 50_000_000;
    private static final int SHORT_RESTS = 100;
    /** A full ring takes a slow disk some seconds. */
    private static final long STOP_LIMIT_MS = 20_000;

    private final JournalAgent agent;
    private volatile boolean running = true;
    private Thread thread;

    JournalRunner(final JournalAgent agent) {
        this.agent = agent;
    }

    void start() {
        thread = new Thread(this, agent.roleName());
        thread.start();
    }

    @Override
    public void run() {
        int idle = 0;
        while (running) {
            if (agent.doWork() > 0) {
                idle = 0;
            } else {
                LockSupport.parkNanos(this, ++idle > SHORT_RESTS ? LONG_REST_NS : REST_NS);
            }
        }
        agent.onClose();
    }

    /** Appends what is there now and closes the journal; on a disk that hangs, {@link #hangs} is true afterwards. */
    void stop() throws InterruptedException {
        stop(STOP_LIMIT_MS);
    }

    void stop(final long limitMs) throws InterruptedException {
        running = false;
        LockSupport.unpark(thread);
        thread.join(limitMs);
    }

    /** Whether the thread was told to stop and has not ended. */
    boolean hangs() {
        return !running && thread.isAlive();
    }

    String name() {
        return agent.roleName();
    }
}
