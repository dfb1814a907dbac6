/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/**
 * Level 1: one segment at a time, in the policy's order, and a granted one is never displaced. Works with any GPU, for
 * processes that mark their segments; others are not held back.
 */
public final class GateMechanism extends PassiveMechanism {
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.GATE, 0, 0, 0, 0, Integer.MAX_VALUE, false, "segment");

    @Override
    public String name() {
        return "gate";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_GATE;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }
}
