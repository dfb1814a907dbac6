/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * How late the machine itself is: a thread that sleeps 1 ms again and again and keeps the longest lateness. A test that
 * holds a program to a stated time adds it: if a machine runs no process for 50 ms, none can react sooner.
 */
public final class StallProbe implements AutoCloseable {
    private static final long PERIOD_NS = 1_000_000;

    private final AtomicLong longestNs = new AtomicLong();
    private final Thread thread = new Thread(this::run, "gpuseg-stall-probe");
    private volatile boolean ended;
    private volatile long sinceNs = System.nanoTime();

    public StallProbe() {
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        while (!ended) {
            final long startNs = System.nanoTime();
            sinceNs = startNs;
            LockSupport.parkNanos(PERIOD_NS);
            final long lateNs = System.nanoTime() - startNs - PERIOD_NS;
            longestNs.accumulateAndGet(lateNs, Math::max);
        }
    }

    /** The longest lateness so far, ns, the one under way included. */
    public long longestNs() {
        return Math.max(longestNs.get(), System.nanoTime() - sinceNs - PERIOD_NS);
    }

    @Override
    public void close() {
        ended = true;   // it ends within its period
    }
}
