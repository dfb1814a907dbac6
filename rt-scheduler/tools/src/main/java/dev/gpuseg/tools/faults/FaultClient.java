/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.tools.process.Child;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A demo task of the fault campaign: its process and what it knows to be recorded. */
final class FaultClient implements AutoCloseable {
    private static final long POLL_NS = 50_000;

    private final String name;
    private final Child process;
    private final ProgressPage page;

    /**
     * Waits until the task has made its page.
     *
     * @param name     for messages
     * @param process  started
     * @param file     its page
     * @param limitNs  how long to wait
     * @throws IllegalStateException if it ended or did not make one
     */
    FaultClient(final String name, final Child process, final Path file, final long limitNs) {
        this.name = name;
        this.process = process;
        page = awaitPage(file, System.nanoTime() + limitNs);
    }

    private ProgressPage awaitPage(final Path file, final long untilNs) {
        while (true) {
            RuntimeException last;
            try {
                final ProgressPage mapped = new ProgressPage(file);
                if (mapped.pid() != 0) {
                    return mapped;
                }
                mapped.close();
                last = new IllegalStateException(file + " is empty");
            } catch (final UncheckedIOException | IllegalStateException e) {
                last = e;
            }
            if (!process.isAlive() || System.nanoTime() - untilNs > 0) {
                throw new IllegalStateException(name + " did not start: " + process.said(), last);
            }
            LockSupport.parkNanos(POLL_NS);
        }
    }

    String name() {
        return name;
    }

    ProgressPage page() {
        return page;
    }

    Child process() {
        return process;
    }

    int pid() {
        return page.pid();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    void signal(final int signal) {
        ProcessStatus.signal(page.pid(), signal);
    }

    /** Whether the task came into a state within a time; polls 20 times a millisecond. */
    boolean awaitState(final int state, final long limitMs) {
        return await(() -> page.state() == state, limitMs);
    }

    /** Whether something about it became true within a time and while it lived. */
    boolean await(final java.util.function.BooleanSupplier condition, final long limitMs) {
        final long untilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - untilNs > 0 || !process.isAlive()) {
                return condition.getAsBoolean();
            }
            LockSupport.parkNanos(POLL_NS);
        }
        return true;
    }

    /** Ends the process; the page stays readable. */
    @Override
    public void close() {
        process.close();
    }
}
