/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.daemon.dispatch.DispatcherAgent;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Tells the dispatcher once a second how much each GPU works for which it matters. On a thread of its own, which may
 * wait for the driver's locks.
 */
final class BusyLooks {
    static final String THREAD = "gpuseg-busy";
    private static final long EVERY_MS = 1000;

    private final DispatcherAgent dispatcher;
    private final List<? extends Mechanism> mechanisms;
    private final Consumer<String> log;
    private final ScheduledExecutorService thread = Executors.newSingleThreadScheduledExecutor(task -> {
        final Thread t = new Thread(task, THREAD);
        t.setDaemon(true);
        return t;
    });
    private boolean isSaid;

    BusyLooks(final DispatcherAgent dispatcher, final List<? extends Mechanism> mechanisms,
        final Consumer<String> log) {
        this.dispatcher = dispatcher;
        this.mechanisms = mechanisms;
        this.log = log;
    }

    void start() {
        thread.scheduleWithFixedDelay(this::look, EVERY_MS, EVERY_MS, TimeUnit.MILLISECONDS);
    }

    private void look() {
        for (int gpu = 0; gpu < mechanisms.size(); gpu++) {
            if (!dispatcher.asksHowBusy(gpu)) {
                continue;
            }
            final int percent = mechanisms.get(gpu).busyPercent();
            if (percent >= 0) {
                dispatcher.busy(gpu, percent);
            } else if (!isSaid) {
                isSaid = true;
                log.accept("how much GPU " + gpu + " works is not known: best effort takes turns also where its "
                    + "programs leave the GPU idle; NVML (libnvidia-ml.so.1) says it on NVIDIA");
            }
        }
    }

    /** No look begins from now on. */
    void stop() {
        thread.shutdownNow();
    }

    /** Whether the last look has ended, waiting so long at most. */
    boolean awaitEnd(final long limitNs) throws InterruptedException {
        return thread.awaitTermination(limitNs, TimeUnit.NANOSECONDS);
    }

    boolean hasEnded() {
        return thread.isTerminated();
    }
}
