/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * The thread by which a mechanism looks at GPU processes where no driver tells of changes: every 20 ms while it waits
 * for something, else every 250 ms. A look that fails is told, and made again. All methods on any thread.
 */
public final class LookThread {
    private static final long MS = 1_000_000;
    private static final long SOON_NS = 20 * MS;
    private static final long LATER_NS = 250 * MS;
    private static final int END_WAIT_MS = 2_000;

    private final BooleanSupplier look;
    private final Consumer<String> failed;
    private final Runnable atEnd;
    private final Thread thread;
    private volatile boolean running = true;

    /**
     * Starts nothing yet.
     *
     * @param name   of the thread
     * @param look   brings the picture up to date; true = look again soon
     * @param failed receives why a look failed, one line
     * @param atEnd  done by the thread after its last look
     */
    public LookThread(final String name, final BooleanSupplier look, final Consumer<String> failed,
        final Runnable atEnd) {
        this.look = look;
        this.failed = failed;
        this.atEnd = atEnd;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    /** Once. */
    public void start() {
        thread.start();
    }

    /** Look now. */
    public void wake() {
        LockSupport.unpark(thread);
    }

    /** Ends it; waits 2 s at most for a look that is being made. */
    public void stop() {
        running = false;
        wake();
        try {
            thread.join(END_WAIT_MS);
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void run() {
        while (running) {
            try {
                LockSupport.parkNanos(look.getAsBoolean() ? SOON_NS : LATER_NS);
            } catch (final RuntimeException e) {
                failed.accept("watch of GPU processes: " + e);
                LockSupport.parkNanos(LATER_NS);
            }
        }
        atEnd.run();
    }
}
