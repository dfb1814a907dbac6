/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/** Claims level 3 and does nothing, at once: for warming up and for measuring what is not the device. */
public class InstantMechanism extends PassiveMechanism {
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.INTERRUPT, 0, 0, 0, 0, Integer.MAX_VALUE, false, "process");

    @Override
    public String name() {
        return "none";
    }

    @Override
    public int id() {
        return Abi.MECHANISM_NONE;
    }

    @Override
    public Capabilities capabilities() {
        return CAPABILITIES;
    }
}
