/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.calibrate;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;

/**
 * Starts short processes at a steady rate, each of which makes a context on the GPU, works and ends. Driver calls wait
 * for locks that the driver holds while contexts are made and freed, so delays that were measured without such
 * processes say nothing of a machine that has them. A thread of its own starts them; {@link #close} waits for the last.
 */
final class Churn implements AutoCloseable {
    /** More than these at once are not started: a slow machine is not to be filled with processes. */
    static final int AT_ONCE = 8;
    private static final long END_LIMIT_S = 60;
    private static final double NS_PER_S = 1e9;

    private final IntFunction<List<String>> command;
    private final long intervalNs;
    private final Thread thread;
    private final List<Process> alive = new ArrayList<>();
    private int started;
    private int ended;
    private String failure = "";
    private volatile boolean stop;

    /**
     * Starts the first process at once.
     *
     * @param perSecond processes per second, positive
     * @param command   of the process of a number, from 0; it must end by itself
     */
    Churn(final double perSecond, final IntFunction<List<String>> command) {
        this.command = command;
        intervalNs = (long) (NS_PER_S / perSecond);
        thread = new Thread(this::run, "gpuseg-churn");
        thread.setDaemon(true);
        thread.start();
    }

    private void run() {
        try {
            for (long dueNs = System.nanoTime(); !stop; dueNs += intervalNs) {
                collect();
                if (alive.size() < AT_ONCE) {
                    alive.add(new ProcessBuilder(command.apply(started))
                        .redirectErrorStream(true).redirectOutput(ProcessBuilder.Redirect.DISCARD).start());
                    started++;
                }
                final long leftNs = dueNs + intervalNs - System.nanoTime();
                if (leftNs > 0) {
                    TimeUnit.NANOSECONDS.sleep(leftNs);
                } else {
                    dueNs = System.nanoTime() - intervalNs;
                }
            }
        } catch (final IOException e) {
            failure = e.getMessage();
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Forgets processes that have ended. */
    private void collect() {
        for (final Iterator<Process> each = alive.iterator(); each.hasNext();) {
            final Process process = each.next();
            if (!process.isAlive()) {
                ended++;
                if (process.exitValue() != 0 && failure.isEmpty()) {
                    failure = "a process that came and went ended with status " + process.exitValue();
                }
                each.remove();
            }
        }
    }

    /**
     * Stops, and waits for the processes that still run.
     *
     * @return how many were started; all of them have ended
     * @throws IllegalStateException if a process could not be started, failed, or does not end
     */
    int stop() throws InterruptedException {
        stop = true;
        thread.interrupt();
        thread.join();
        for (final Process process : alive) {
            if (!process.waitFor(END_LIMIT_S, TimeUnit.SECONDS)) {
                failure = "a process that came and went does not end";
            }
        }
        collect();
        if (!failure.isEmpty()) {
            throw new IllegalStateException("calibrate: " + failure);
        }
        if (ended != started) {
            throw new IllegalStateException("calibrate: " + started + " processes were started, " + ended + " ended");
        }
        return started;
    }

    @Override
    public void close() {
        stop = true;
        thread.interrupt();
        try {
            thread.join();
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        alive.forEach(Process::destroyForcibly);
    }
}
