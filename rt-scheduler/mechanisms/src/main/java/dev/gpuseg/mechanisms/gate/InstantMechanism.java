/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/**
 * Claims level 3 and does nothing: for warming up, and for measuring everything but the device. Not in the catalogue.
 */
public class InstantMechanism extends PassiveMechanism {
    /** There is nothing to connect to. */
    public InstantMechanism() {
        super("none", Abi.MECHANISM_NONE, Capabilities.INTERRUPT, "process");
    }
}
