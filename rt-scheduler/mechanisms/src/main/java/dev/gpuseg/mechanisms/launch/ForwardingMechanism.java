/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import dev.gpuseg.mechanisms.ProcessListener;

/** What a mechanism that holds launches beside a device leaves to the device. */
abstract class ForwardingMechanism implements Mechanism {
    final Mechanism device;

    /** The device is closed with this one, by the subclass. */
    ForwardingMechanism(final Mechanism device) {
        this.device = device;
    }

    /** What is held when the daemon dies is the device's. */
    @Override
    public int id() {
        return device.id();
    }

    @Override
    public boolean changed() {
        return device.changed();
    }

    @Override
    public void changeListener(final Runnable wake) {
        device.changeListener(wake);
    }

    @Override
    public void expectation(final Runnable soon) {
        device.expectation(soon);
    }

    @Override
    public void released() {
        device.released();
    }

    @Override
    public void processListener(final ProcessListener listener) {
        device.processListener(listener);
    }

    @Override
    public void registered(final ContextRef context, final boolean registered) {
        device.registered(context, registered);
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return device.heldPayload(context);
    }

    @Override
    public int units(final ContextRef context) {
        return device.units(context);
    }

    @Override
    public String remark(final ContextRef context) {
        return device.remark(context);
    }

    @Override
    public String lastError() {
        return device.lastError();
    }
}
