/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What the watchdog needs: {@code struct gpuseg_amd_held} in rt-scheduler/native/amd/gpuseg_amd.h. While the daemon
 * lives but hangs, the watchdog duplicates the descriptor named here: of {@code /dev/gpuseg-kfd}, whose holds it ends,
 * or of the page by which it asks the {@link Tracer}. When the daemon is dead the kernel has ended holds and debugger's
 * suspends; the checkpoint's pause is ended by the watchdog itself.
 */
final class Held {
    static final int VERSION = 1;
    private static final int BYTES = 24;

    private Held() {
    }

    static byte[] payload(final Rung rung, final int fd, final int daemon) {
        return ByteBuffer.allocate(BYTES).order(ByteOrder.LITTLE_ENDIAN).putInt(VERSION).putInt(rung.number())
            .putInt(daemon).putInt(fd).putLong(ProcessStatus.startTicks(daemon)).array();
    }
}
