/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Layouts;
import java.util.Locale;

/**
 * The only RM commands that this program ever issues. Each acts on, or asks about, objects that one process made.
 * Commands that concern a whole device (scheduling policy, clocks, resets, partitions) are absent on purpose, and
 * {@link #of} refuses them.
 */
public enum RmCommand {
    /** On a client: class or parent of one of its handles. */
    GET_HANDLE_INFO(Layouts.RM_GET_HANDLE_INFO, Layouts.RmHandleInfo.SIZE),
    /** On a subdevice: RM's number of its GPU, see {@link GpuIndex}. Parameters: u32 result. */
    GPU_GET_ID(Layouts.RM_GPU_GET_ID, Integer.BYTES),
    /** On a subdevice: disables or enables up to 64 channels. */
    FIFO_DISABLE_CHANNELS(Layouts.RM_FIFO_DISABLE_CHANNELS, Layouts.RmDisableChannels.SIZE),
    /** On a channel group: u64 microseconds. */
    SET_TIMESLICE(Layouts.RM_SET_TIMESLICE, Long.BYTES),
    /** On a channel group: u64 microseconds. */
    GET_TIMESLICE(Layouts.RM_GET_TIMESLICE, Long.BYTES),
    /** On a channel group: u32 its number in hardware. */
    GET_INFO(Layouts.RM_GET_INFO, Integer.BYTES);

    private final int number;
    private final int parameterBytes;

    RmCommand(final int number, final int parameterBytes) {
        this.number = number;
        this.parameterBytes = parameterBytes;
    }

    /** Number in the driver's interface; the command word. */
    public int number() {
        return number;
    }

    /** Exact size of its parameters; bytes. */
    public int parameterBytes() {
        return parameterBytes;
    }

    /**
     * The command of a number.
     *
     * @param number the command word
     * @return the command
     * @throws IllegalArgumentException if it is not one that may be issued
     */
    public static RmCommand of(final int number) {
        for (final RmCommand c : values()) {
            if (c.number == number) {
                return c;
            }
        }
        throw new IllegalArgumentException("RM command " + String.format(Locale.ROOT, "0x%08x", number)
            + " is not among those that may be issued; only per-context commands are");
    }
}
