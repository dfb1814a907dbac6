/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import dev.gpuseg.ipc.Session;

/** A slot of a client's session. */
final class SessionSlot implements TaskSlot {
    private final Session session;
    private final int slot;

    SessionSlot(final Session session, final int slot) {
        this.session = session;
        this.slot = slot;
    }

    @Override
    public void grant(final long ticket, final int verdict) {
        session.grant(slot, ticket, verdict);
    }

    @Override
    public void pregrant(final boolean pregrant) {
        session.pregrant(slot, pregrant);
    }

    @Override
    public void state(final int state) {
        session.state(slot, state);
    }

    @Override
    public void countPreemption() {
        session.countPreemption(slot);
    }

    @Override
    public void countMiss() {
        session.countMiss(slot);
    }

    @Override
    public void countOverrun() {
        session.countOverrun(slot);
    }

    @Override
    public void expected() {
        session.expected(slot);
    }

    @Override
    public boolean isInFlight() {
        return session.isInFlight(slot);
    }

    @Override
    public long drainedNs() {
        return session.drainedNs(slot);
    }

    @Override
    public long kernelNs() {
        return session.kernelNs(slot);
    }

    @Override
    public int kernelClass() {
        return session.kernelClass(slot);
    }

    @Override
    public int kernelPercent() {
        return session.kernelPercent(slot);
    }

    @Override
    public void release() {
        session.releaseSlot(slot);
    }
}
