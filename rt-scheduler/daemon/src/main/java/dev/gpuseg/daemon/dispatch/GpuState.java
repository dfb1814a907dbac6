/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/** What the dispatcher remembers of one GPU between a decision and its enforcement. Dispatcher thread only. */
final class GpuState {
    static final int NOBODY = -1;

    final Enforcer enforcer;
    /** Version of the newest desired state that took a context off, or in which a reservation began or ended. */
    long disableVersion;
    /** The real-time segment whose enforcement is awaited. */
    int awaitedTask = NOBODY;
    long awaitedTicket;
    long awaitedVersion;

    /** The real-time task whose announced begin is the next to act on, {@link #NOBODY} if there is none. */
    int hintedTask = NOBODY;
    /** When lower work is to be taken off for it, and when that ends if it does not begin. */
    long hintFromNs = Long.MAX_VALUE;
    long hintUntilNs;
    /** Keeps lower work off for the hinted task. */
    final Reservation reservation;

    GpuState(final Enforcer enforcer, final Reservation reservation) {
        this.enforcer = enforcer;
        this.reservation = reservation;
    }

    /** When something about the hint is due, {@link Long#MAX_VALUE} if nothing is. */
    long nextHintNs() {
        return hintedTask == NOBODY ? Long.MAX_VALUE : reservation.isActive() ? hintUntilNs : hintFromNs;
    }

    /** Nothing that any decision so far wanted off is still on. */
    boolean isSettled() {
        return enforcer.enforcedVersion() >= disableVersion;
    }

    void await(final int taskId, final long ticket) {
        awaitedTask = taskId;
        awaitedTicket = ticket;
        awaitedVersion = disableVersion;
    }

    void forget(final int taskId) {
        if (awaitedTask == taskId) {
            awaitedTask = NOBODY;
        }
    }
}
