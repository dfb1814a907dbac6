/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/** Waits for what another process does. */
public final class Polling {
    private Polling() {
    }

    /** Waits until a condition holds, so long at most, and looks every millisecond. Returns whether it held in time. */
    public static boolean until(final BooleanSupplier condition, final long limitMs) throws InterruptedException {
        final long untilNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - untilNs > 0) {
                return false;
            }
            TimeUnit.MILLISECONDS.sleep(1);
        }
        return true;
    }
}
