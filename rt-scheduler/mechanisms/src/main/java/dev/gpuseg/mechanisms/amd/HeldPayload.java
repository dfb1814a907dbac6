/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What the watchdog needs: {@code struct gpuseg_amd_held} in rt-scheduler/native/amd/gpuseg_amd.h. While the daemon
 * is alive but hangs, the watchdog duplicates the descriptor named here: of {@code /dev/gpuseg-kfd}, whose holds it
 * releases, or of the page by which it asks the {@link Tracer}. When the daemon is dead, the kernel has ended holds and
 * the debugger's suspends; the watchdog itself ends the checkpoint's pause.
 */
final class HeldPayload {
    private static final int VERSION = 1;
    private static final int BYTES = 24;

    private HeldPayload() {
    }

    /** The number is a descriptor of this process or, for {@link ControlInterface#AGENT}, a slot. */
    static byte[] of(final ControlInterface by, final int number) {
        final int daemon = ProcessStatus.pid();
        return ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(VERSION).putInt(by.number())
            .putInt(daemon).putInt(number).putLong(ProcessStatus.startTicks(daemon)).array();
    }
}
