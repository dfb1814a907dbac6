/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/** Level 0: segments are recorded and every begin is granted at once. Works on any machine. */
public final class ObserveMechanism extends PassiveMechanism {
    private static final Capabilities CAPABILITIES =
        new Capabilities(Capabilities.OBSERVE, 0, 0, 0, 0, Integer.MAX_VALUE, false, "none");

    @Override
    public String name() {
        return "observe";
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
