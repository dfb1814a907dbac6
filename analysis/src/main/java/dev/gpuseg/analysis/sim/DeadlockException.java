/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.sim;

/** A simulated run in which jobs wait for each other without end. */
public final class DeadlockException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    private final boolean tiedDeadlines;

    /**
     * A run that came to a stop.
     *
     * @param message       who waits, in one line
     * @param tiedDeadlines two of the waiting jobs spin for one GPU on one core and have the same absolute deadline
     */
    DeadlockException(final String message, final boolean tiedDeadlines) {
        super(message);
        this.tiedDeadlines = tiedDeadlines;
    }

    /**
     * Whether hypothesis E3 does not hold in this run, so that it says nothing of bounds that assume it.
     *
     * @return true if two waiting jobs that spin for one GPU on one core have the same absolute deadline
     */
    public boolean hasTiedDeadlines() {
        return tiedDeadlines;
    }
}
