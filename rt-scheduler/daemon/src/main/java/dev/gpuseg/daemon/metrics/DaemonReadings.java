/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import java.util.Map;
import java.util.function.ObjLongConsumer;

/** What a scrape asks the daemon for besides the {@link LiveModel}. Any thread; must not block. */
public interface DaemonReadings {
    /** What does not change while the daemon runs: version, mechanism, level, simulated. */
    Map<String, String> info();

    /** The dispatcher's and the mechanism's counters, label and value. */
    void counters(ObjLongConsumer<String> to);

    /**
     * The front desk's counters.
     *
     * @param to called with each label and value
     */
    void conductorCounters(ObjLongConsumer<String> to);

    /** Contexts that stand in the held file: off the hardware now, or about to be. */
    int heldContexts();

    /** The longest duty cycle of the dispatcher since start, ns. */
    long maxCycleNs();

    /** Events written to the journal since start. */
    long journalWritten();

    /** Events since start that were not: after an error of the disk, or because the ring was full. */
    long journalLost();

    /** What the observer (BPF) has seen. */
    ObserverReadings observer();
}
