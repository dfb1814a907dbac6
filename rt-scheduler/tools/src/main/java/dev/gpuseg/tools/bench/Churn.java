/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.bench;

import java.io.File;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * Processes that come and go: so many a second register with the daemon, run a few segments, and end. One thread of its
 * own, until it is closed.
 */
final class Churn implements AutoCloseable {
    private static final int LIMIT_S = 60;
    /** More at the same time would load the machine instead of the daemon. */
    private static final int RUNNING_MAX = 8;
    private static final long NS_PER_S = 1_000_000_000L;

    private final List<String> command;
    private final long periodNs;
    private final Deque<Process> running = new ArrayDeque<>();
    private final Thread thread = new Thread(this::run, "gpuseg-churn");
    private volatile boolean wanted = true;
    private int ended;
    private int failed;
    private IOException notStarted;

    /**
     * Starts processes from now on.
     *
     * @param command   of each; writes nothing that is looked at
     * @param perSecond 1..100
     */
    Churn(final List<String> command, final int perSecond) {
        this.command = List.copyOf(command);
        periodNs = NS_PER_S / perSecond;
        thread.start();
    }

    private void run() {
        long dueNs = System.nanoTime();
        try {
            while (wanted) {
                reap(RUNNING_MAX - 1);
                running.add(new ProcessBuilder(command).redirectErrorStream(true)
                    .redirectOutput(new File("/dev/null")).start());
                dueNs += periodNs;
                final long restNs = dueNs - System.nanoTime();
                if (restNs > 0) {
                    TimeUnit.NANOSECONDS.sleep(restNs);
                } else {
                    dueNs = System.nanoTime();   // this machine does not start as many
                }
            }
            reap(0);
        } catch (final IOException e) {
            notStarted = e;
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            running.forEach(Process::destroyForcibly);
        }
    }

    /** Waits for the oldest ones until at most so many run. */
    private void reap(final int most) throws InterruptedException {
        while (!running.isEmpty() && (running.size() > most || !running.peek().isAlive())) {
            final Process oldest = running.remove();
            if (!oldest.waitFor(LIMIT_S, TimeUnit.SECONDS)) {
                oldest.destroyForcibly();
                failed++;
            } else if (oldest.exitValue() != 0) {
                failed++;
            }
            ended++;
        }
    }

    /**
     * Starts no more and waits for those that run.
     *
     * @return how many came and went
     * @throws IllegalStateException if one could not be started, did not end, or was not content
     */
    int finish() throws InterruptedException {
        wanted = false;
        thread.join();
        if (notStarted != null || failed > 0) {
            throw new IllegalStateException("processes that come and go: " + (notStarted == null ? failed + " of "
                + ended + " failed (" + String.join(" ", command) + ")" : notStarted.getMessage()));
        }
        return ended;
    }

    @Override
    public void close() {
        wanted = false;
        thread.interrupt();
    }
}
