/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.ProcessStatus;
import dev.gpuseg.mechanisms.Layouts;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What the watchdog needs: {@code struct gpuseg_amd_held} in rt-scheduler/native/amd/gpuseg_amd.h. While the daemon
 * is alive but hangs, the watchdog duplicates the descriptor of {@code /dev/gpuseg-kfd} named here and releases its
 * holds, or orders the agent in that slot. When the daemon is dead, the kernel has ended its holds.
 */
final class HeldPayload {
    private HeldPayload() {
    }

    /** The number is a descriptor of this process or, for {@link ControlInterface#AGENT}, a slot. */
    static byte[] of(final ControlInterface by, final int number) {
        final int daemon = ProcessStatus.pid();
        return ByteBuffer.allocate(Layouts.AmdHeld.SIZE).order(ByteOrder.LITTLE_ENDIAN)
            .putInt(Layouts.AmdHeld.VERSION_OFFSET, Layouts.AMD_HELD_VERSION)
            .putInt(Layouts.AmdHeld.INTERFACE_OFFSET, by.number())
            .putInt(Layouts.AmdHeld.DAEMON_OFFSET, daemon)
            .putInt(Layouts.AmdHeld.FD_OFFSET, number)
            .putLong(Layouts.AmdHeld.DAEMON_START_TICKS_OFFSET, ProcessStatus.startTicks(daemon)).array();
    }
}
