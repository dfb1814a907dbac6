/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.ipc.platform.ProcessCpuTime;
import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Bounds how long the JVM's compilers run as real-time threads. They have to be ({@link RuntimeThreads}), but after a
 * start, or when a new kind of load comes, one can compute for seconds. The kernel lets all real-time threads of a
 * processor together have 95 % of each second (sched_rt_runtime_us) and then none of them for the rest: a dispatcher
 * that is woken there waits for up to 50 ms, whatever its priority.
 *
 * <p>So a thread looks at them ten times a second. A compiler that has used up its allowance is an ordinary thread
 * until it has some again: in any time d it is a real-time thread that runs for d * {@value #PERCENT} % and 0.2 s at
 * most.
 */
public final class CompilerTime implements AutoCloseable {
    /** The looking thread's name; {@link RuntimeThreads} gives it its priority by that. */
    static final String NAME = "gpuseg-compiler";
    static final int PERCENT = 30;
    static final long BURST_NS = 100_000_000;
    static final long LOOK_NS = 100_000_000;
    private static final int WHOLE = 100;
    /** What is not read: the thread has ended. */
    private static final int ENDED = -1;

    /** What one compiler may use. */
    static final class Allowance {
        private long leftNs = BURST_NS;
        private boolean ordinary;

        /**
         * Time has passed.
         *
         * @param elapsedNs since the last call, positive
         * @param usedNs    of that, what the thread ran, from 0
         * @return whether {@link #isOrdinary} has changed
         */
        boolean passed(final long elapsedNs, final long usedNs) {
            leftNs = Math.min(BURST_NS, leftNs + elapsedNs * PERCENT / WHOLE - (ordinary ? 0 : usedNs));
            final boolean before = ordinary;
            ordinary = ordinary ? leftNs < BURST_NS / 2 : leftNs < 0;
            return ordinary != before;
        }

        /** Whether it has nothing left. */
        boolean isOrdinary() {
            return ordinary;
        }
    }

    private final int[] tids;
    private final Allowance[] allowances;
    private final long[] usedNs;
    private final int priority;
    private final Runnable onOrdinary;
    private final ProcessCpuTime clock = new ProcessCpuTime();
    private final Thread thread;
    private long lookedNs = System.nanoTime();
    private volatile boolean running = true;

    /**
     * @param tids       the compilers, by the kernel's ids
     * @param priority   real-time priority of them, 1..99
     * @param onOrdinary called on the looking thread when one is made an ordinary thread
     */
    public CompilerTime(final int[] tids, final int priority, final Runnable onOrdinary) {
        this.tids = tids.clone();
        this.priority = priority;
        this.onOrdinary = onOrdinary;
        allowances = new Allowance[tids.length];
        usedNs = new long[tids.length];
        for (int i = 0; i < tids.length; i++) {
            allowances[i] = new Allowance();
            usedNs[i] = clock.threadNs(tids[i]);
        }
        thread = new Thread(this::run, NAME);
        thread.setDaemon(true);
    }

    /** Starts to look. */
    public void start() {
        thread.start();
    }

    private void run() {
        while (running) {
            LockSupport.parkNanos(LOOK_NS);
            look();
        }
    }

    private void look() {
        final long nowNs = System.nanoTime();
        final long elapsedNs = Math.max(1, nowNs - lookedNs);
        lookedNs = nowNs;
        for (int i = 0; i < tids.length; i++) {
            final long now = tids[i] == ENDED ? ProcessCpuTime.GONE : clock.threadNs(tids[i]);
            if (now == ProcessCpuTime.GONE) {
                tids[i] = ENDED;
                continue;
            }
            final boolean changed = allowances[i].passed(elapsedNs, now - usedNs[i]);
            usedNs[i] = now;
            if (changed) {
                set(i);
            }
        }
    }

    private void set(final int i) {
        final boolean ordinary = allowances[i].isOrdinary();
        try {
            ThreadControl.realTime(tids[i], ordinary ? 0 : priority);
            if (ordinary) {
                onOrdinary.run();
            }
        } catch (final SystemCallException e) {
            tids[i] = ENDED;   // with ESRCH; or a right that was there at the start is gone, and it stays what it is
            if (e.errno() != Errno.ESRCH) {
                throw e;
            }
        }
    }

    @Override
    public void close() {
        running = false;
        LockSupport.unpark(thread);
        try {
            thread.join(TimeUnit.NANOSECONDS.toMillis(LOOK_NS));
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
