/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;

/** A mechanism that never touches a device: every operation succeeds at once. */
abstract class PassiveMechanism implements Mechanism {
    private static final byte[] NOTHING = new byte[0];

    private final String name;
    private final int id;
    private final Capabilities capabilities;

    PassiveMechanism(final String name, final int id, final int level, final String granularity) {
        this.name = name;
        this.id = id;
        capabilities = new Capabilities(level, 0, 0, 0, 0, Integer.MAX_VALUE, false, granularity);
    }

    @Override
    public final String name() {
        return name;
    }

    @Override
    public final int id() {
        return id;
    }

    @Override
    public final Capabilities capabilities() {
        return capabilities;
    }

    @Override
    public final void attach(final ContextRef context) {
        context.result(ContextRef.SwitchResult.DONE, 0, 0);
    }

    @Override
    public final int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        final long nowNs = System.nanoTime();
        for (int i = 0; i < disableCount; i++) {
            disable[i].result(ContextRef.SwitchResult.DONE, nowNs, nowNs);
        }
        for (int i = 0; i < enableCount; i++) {
            enable[i].result(ContextRef.SwitchResult.DONE, nowNs, nowNs);
        }
        return 0;
    }

    @Override
    public final boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return false;
    }

    @Override
    public final byte[] heldPayload(final ContextRef context) {
        return NOTHING;
    }

    @Override
    public final void detach(final ContextRef context) {
        context.attachment(null);
    }

    @Override
    public final String lastError() {
        return "";
    }

    @Override
    public final void close() {
        // nothing is held
    }
}
