/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.WatchdogPage;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** Starts another watchdog when the one that ran is gone. One thread keeps it; any thread may ask. */
final class WatchdogKeeper implements AutoCloseable {
    private final Supplier<Watchdog> starter;
    private final Consumer<WatchdogPage> told;
    private volatile Watchdog current;
    private volatile long restarts;
    private volatile String failure = "";

    /**
     * @param first   runs already; null for a daemon without one
     * @param starter starts another; throws {@link StartUpException} if it does not start
     * @param told    learns where the new one counts
     */
    WatchdogKeeper(final Watchdog first, final Supplier<Watchdog> starter, final Consumer<WatchdogPage> told) {
        current = first;
        this.starter = starter;
        this.told = told;
    }

    /** Where the one that runs counts; null without a watchdog. */
    WatchdogPage page() {
        final Watchdog watchdog = current;
        return watchdog == null ? null : watchdog.page();
    }

    /** Looks whether it is there still. What fails is tried again with the next look. */
    void keep() {
        final Watchdog watchdog = current;
        if (watchdog == null || watchdog.isAlive()) {
            return;
        }
        try {
            final Watchdog next = starter.get();
            current = next;
            told.accept(next.page());
            restarts = restarts + 1;   // single writer
            failure = "";
        } catch (final StartUpException e) {
            failure = e.getMessage();
        }
    }

    /** 0 without a watchdog. */
    long pid() {
        final Watchdog watchdog = current;
        return watchdog == null ? 0 : watchdog.pid();
    }

    long restarts() {
        return restarts;
    }

    /** Why there is none at the moment; empty if there is one. */
    String failure() {
        return failure;
    }

    @Override
    public void close() {
        final Watchdog watchdog = current;
        if (watchdog != null) {
            watchdog.close();
        }
    }
}
