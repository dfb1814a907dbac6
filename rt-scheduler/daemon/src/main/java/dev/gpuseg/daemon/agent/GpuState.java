/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

/** What the dispatcher remembers of one GPU between a decision and its enforcement. Dispatcher thread only. */
final class GpuState {
    static final int NOBODY = -1;

    final Enforcer enforcer;
    /** Version of the newest desired state that took a context off. */
    long disableVersion;
    /** The real-time segment whose enforcement is awaited. */
    int awaitedTask = NOBODY;
    long awaitedTicket;
    long awaitedVersion;

    GpuState(final Enforcer enforcer) {
        this.enforcer = enforcer;
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
