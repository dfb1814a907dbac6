/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.WatchdogPage;

/** A watchdog that runs: it enables what is held when the daemon gives no sign of life. */
interface Watchdog extends AutoCloseable {
    boolean isAlive();

    long pid();

    /** Where it counts what it enabled. */
    WatchdogPage page();

    /** After the clean stop was announced and nothing is held. */
    @Override
    void close();
}
