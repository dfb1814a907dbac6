/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;

/**
 * A thread that scans GPU processes for a driver that reports no changes: every 20 ms while the last scan asked for
 * another one soon, else every 250 ms. Where an observer reports the changes, a scan follows each report, and one is
 * made every second besides. A scan that fails is reported and repeated. All methods on any thread.
 */
final class ScanThread {
    private static final long MS = 1_000_000;
    private static final long SOON_NS = 20 * MS;
    private static final long LATER_NS = 250 * MS;
    /** Property: ms from scan to scan where an observer reports the changes and reports none. For tests. */
    static final String OBSERVED_PROPERTY = "gpuseg.scan.observed";
    private static final int OBSERVED_MS = 1_000;
    /** From scan to scan at least: who makes and removes queues without end shall not keep a processor busy. */
    private static final long GAP_NS = MS;
    private static final int END_WAIT_MS = 2_000;

    private final BooleanSupplier scan;
    private final BooleanSupplier observed;
    private final long observedNs = Integer.getInteger(OBSERVED_PROPERTY, OBSERVED_MS) * MS;
    private final Consumer<String> failed;
    private final Runnable atEnd;
    private final Thread thread;
    private volatile boolean running = true;

    /**
     * Does not start the thread yet.
     *
     * @param name   of the thread
     * @param scan   updates what is known; true = scan again soon
     * @param observed whether changes are reported by {@link #wake}
     * @param failed receives why a scan failed, one line
     * @param atEnd  run by the thread after its last scan
     */
    ScanThread(final String name, final BooleanSupplier scan, final BooleanSupplier observed,
        final Consumer<String> failed, final Runnable atEnd) {
        this.scan = scan;
        this.observed = observed;
        this.failed = failed;
        this.atEnd = atEnd;
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
    }

    /** To be called once. */
    void start() {
        thread.start();
    }

    /** Scan now. */
    void wake() {
        LockSupport.unpark(thread);
    }

    /** Ends the thread. Waits at most 2 s for a scan in progress. */
    void stop() {
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
                final boolean soon = scan.getAsBoolean();
                if (observed.getAsBoolean()) {
                    TimeUnit.NANOSECONDS.sleep(GAP_NS);   // a report meanwhile is kept for the next line
                    LockSupport.parkNanos(observedNs);
                } else {
                    LockSupport.parkNanos(soon ? SOON_NS : LATER_NS);
                }
            } catch (final InterruptedException e) {
                break;   // nobody interrupts it but to end it
            } catch (final RuntimeException e) {
                failed.accept("scan of GPU processes: " + e);
                LockSupport.parkNanos(LATER_NS);
            }
        }
        atEnd.run();
    }
}
