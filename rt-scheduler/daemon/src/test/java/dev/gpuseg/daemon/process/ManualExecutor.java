/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** A background thread that runs when the test says so. */
final class ManualExecutor extends ScheduledThreadPoolExecutor {
    final List<Runnable> due = new ArrayList<>();
    final List<Runnable> repeated = new ArrayList<>();

    ManualExecutor() {
        super(0);
    }

    @Override
    public void execute(final Runnable task) {
        due.add(task);
    }

    @Override
    public ScheduledFuture<?> scheduleWithFixedDelay(final Runnable task, final long initialDelay, final long delay,
        final TimeUnit unit) {
        repeated.add(task);
        return null;
    }

    void runDue() {
        while (!due.isEmpty()) {
            due.remove(0).run();
        }
    }
}
