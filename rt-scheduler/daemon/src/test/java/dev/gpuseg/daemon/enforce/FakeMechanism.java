/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import dev.gpuseg.mechanisms.Mechanism;
import java.util.HashMap;
import java.util.Map;

/** A device that does what it is asked at once, with the capabilities that a test gives it. */
public final class FakeMechanism implements Mechanism {
    public Capabilities capabilities = new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, 64, true, "process");
    public int units = -1;
    /** By pid, where it is another number. */
    public final Map<Integer, Integer> unitsOf = new HashMap<>();
    public String remark = "";
    public boolean slicesBoundWaits;

    public static Capabilities level(final int level, final boolean timeslice) {
        return new Capabilities(level, 0, 0, 0, 0, 64, timeslice, "process");
    }

    @Override
    public String name() {
        return "fake";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_SIM;
    }

    @Override
    public Capabilities capabilities() {
        return capabilities;
    }

    @Override
    public void attach(final ContextRef context) {
        // nothing to remember
    }

    @Override
    public int apply(final ContextRef[] disable, final int disableCount, final ContextRef[] enable,
        final int enableCount) {
        for (int i = 0; i < disableCount; i++) {
            disable[i].result(ContextRef.SwitchResult.DONE, 1, 2);
        }
        for (int i = 0; i < enableCount; i++) {
            enable[i].result(ContextRef.SwitchResult.DONE, 1, 2);
        }
        return 0;
    }

    @Override
    public boolean setTimeslice(final ContextRef context, final long timesliceNs) {
        return capabilities.timeslice();
    }

    @Override
    public boolean slicesBoundWaits() {
        return slicesBoundWaits;
    }

    @Override
    public byte[] heldPayload(final ContextRef context) {
        return new byte[0];
    }

    @Override
    public int units(final ContextRef context) {
        return unitsOf.getOrDefault(context.pid(), units);
    }

    @Override
    public String remark(final ContextRef context) {
        return remark;
    }

    @Override
    public void detach(final ContextRef context) {
        // nothing to forget
    }

    @Override
    public String lastError() {
        return "";
    }

    @Override
    public void close() {
        // nothing is open
    }
}
