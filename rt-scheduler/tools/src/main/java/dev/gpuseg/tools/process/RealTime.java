/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import dev.gpuseg.ipc.platform.SystemCallException;
import dev.gpuseg.ipc.platform.ThreadControl;
import java.util.concurrent.atomic.AtomicReference;

/** Whether this user may run threads under SCHED_FIFO. */
public final class RealTime {
    private RealTime() {
    }

    /** Tries it on a thread that ends afterwards: true if it is permitted. */
    public static boolean isPermitted() throws InterruptedException {
        return refusal().isEmpty();
    }

    /** Tries it on a thread that ends afterwards: the reason of the refusal; empty if it is permitted. */
    public static String refusal() throws InterruptedException {
        final AtomicReference<String> refusal = new AtomicReference<>("");
        final Thread probe = new Thread(() -> {
            try {
                ThreadControl.realTime(1);
            } catch (final SystemCallException e) {
                refusal.set(e.getMessage());
            }
        }, "gpuseg-permission-probe");
        probe.start();
        probe.join();
        return refusal.get();
    }
}
