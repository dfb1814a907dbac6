/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

/** Receives what the observer sees. Called on the observer's thread, which must not wait. */
public interface ObservationListener {
    /**
     * A process did something.
     *
     * @param what the record
     */
    void observed(Observation what);

    /** Records are missing, or none will come: whatever is known of a process may be incomplete. Look for it. */
    void interrupted();
}
