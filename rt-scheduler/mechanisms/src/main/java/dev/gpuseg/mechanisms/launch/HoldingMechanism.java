/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.ipc.Session;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;

/**
 * A mechanism that preempts running work, and holds launches besides: launches of a context are held before the device
 * is told to disable it, and go on after it is enabled. Best-effort programs under {@code gpuseg exec} honour the hold;
 * for all others the device alone decides, as without it.
 */
public final class HoldingMechanism extends ForwardingMechanism {
    private final HeldLaunches launches = new HeldLaunches();

    /**
     * Wraps a mechanism.
     *
     * @param device what disables and enables; closed with this one
     */
    public HoldingMechanism(final Mechanism device) {
        super(device);
    }

    @Override
    public String name() {
        return device.name();
    }

    @Override
    public Capabilities capabilities() {
        return device.capabilities().withHeldLaunches();
    }

    @Override
    public boolean isOutside(final int pid) {
        return device.isOutside(pid);
    }

    @Override
    public void attach(final ContextRef context) {
        device.attach(context);
        launches.attach(context);
    }

    @Override
    public void joined(final ContextRef context, final Session session, final LaunchHold word) {
        launches.joined(context, session, word);
    }

    @Override
    public void left(final ContextRef context, final Session session) {
        launches.left(context, session);
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        for (int i = 0; i < disableCount; i++) {
            launches.hold(disable[i]);
        }
        final int failed = device.apply(disable, disableCount, enable, enableCount);
        for (int i = 0; i < enableCount; i++) {
            launches.go(enable[i]);
        }
        return failed;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return device.setTimeslice(context, timesliceNs);
    }

    @Override
    public boolean slicesBoundWaits() {
        return device.slicesBoundWaits();
    }

    @Override
    public int busyPercent() {
        return device.busyPercent();
    }

    @Override
    public byte[] timeslicePayload(final ContextRef context) {
        return device.timeslicePayload(context);
    }

    @Override
    public void detach(final ContextRef context) {
        launches.detach(context);
        device.detach(context);
    }

    @Override
    public Mechanism rehearsal() {
        final Mechanism practice = device.rehearsal();
        return practice == null ? null : new HoldingMechanism(practice);
    }

    @Override
    public void close() {
        launches.close();
        device.close();
    }
}
