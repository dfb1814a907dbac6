/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.gate;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Capabilities;

/**
 * Level 1: one segment at a time, in the policy's order; a granted segment is never preempted. Works with any GPU, but
 * only for processes that mark their segments; others are not delayed.
 */
public final class GateMechanism extends PassiveMechanism {
    /** There is nothing to connect to. */
    public GateMechanism() {
        super("gate", Abi.MECHANISM_GATE, Capabilities.GATE, "segment");
    }
}
