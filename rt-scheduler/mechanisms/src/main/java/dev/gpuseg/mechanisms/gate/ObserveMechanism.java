/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/** Level 0: segments are recorded and every begin is granted at once. Works on any machine. */
public final class ObserveMechanism extends PassiveMechanism {
    /** There is nothing to connect to. */
    public ObserveMechanism() {
        super("observe", Abi.MECHANISM_NONE, Capabilities.OBSERVE, "none");
    }
}
