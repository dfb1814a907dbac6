/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import org.agrona.concurrent.MessageHandler;

/**
 * What the dispatcher asks of one GPU's enforcement: it publishes a desired state and looks at the version that is
 * enforced. Dispatcher thread only; nothing blocks.
 */
public interface Enforcement {
    /** Where the desired state is published; {@link #kick} follows each commit. */
    DesiredState desired();

    /** The device, for what it can do and for remarks. */
    Mechanism mechanism();

    /** A context is there. */
    void attach(ContextRef context);

    /** The process of a context registered, or has no registration any more. */
    void registered(ContextRef context, boolean registered);

    /** A session of the process of a context was opened. */
    void joined(ContextRef context, Session session);

    /** A session of the process of a context is about to be closed. */
    void left(ContextRef context, Session session);

    /** A context is gone. */
    void detach(int contextId);

    /** The device's own round robin is to give a context this much at a time, ns; 0 = the device's default. */
    void timeslice(int contextId, long wantedNs);

    /**
     * Something was published.
     *
     * @return whether a sleeping thread had to be woken for it
     */
    boolean kick();

    /** Every context that is off in the desired state of this version is off, or could not be disabled. */
    long enforcedVersion();

    /** When that version was reached, CLOCK_MONOTONIC ns. */
    long enforcedNs();

    /** At least one context that must be off could not be disabled. */
    boolean isIncomplete();

    /** Takes results; messages as described in {@link EnforcerResults}. */
    int poll(MessageHandler handler);
}
