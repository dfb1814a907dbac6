/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;

/**
 * Three clocks of Linux, read together: their differences convert times of one clock to another.
 *
 * @param monotonicNs   CLOCK_MONOTONIC: the clock of all records, and of {@link System#nanoTime}
 * @param realtimeNs    CLOCK_REALTIME: ns since 1970-01-01 UTC; jumps when it is set
 * @param boottimeNs    CLOCK_BOOTTIME: as CLOCK_MONOTONIC, suspended time included
 * @param uncertaintyNs the three lie within this time
 */
public record ClockReading(long monotonicNs, long realtimeNs, long boottimeNs, long uncertaintyNs) {
    private static final int CLOCK_REALTIME = 0;
    private static final int CLOCK_MONOTONIC = 1;
    private static final int CLOCK_BOOTTIME = 7;
    private static final int TRIES = 5;
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int TIMESPEC = 16;
    private static final ThreadLocal<Memory> BOOT = ThreadLocal.withInitial(() -> new Memory(TIMESPEC));

    /**
     * Reads the clocks several times and returns the reading with the least uncertainty. Any thread; allocates.
     *
     * @return the reading
     * @throws SystemCallException if the kernel refuses
     */
    public static ClockReading now() {
        try (Memory memory = new Memory(TIMESPEC)) {
            ClockReading best = null;
            for (int i = 0; i < TRIES; i++) {
                final long before = read(memory, CLOCK_MONOTONIC);
                final long realtime = read(memory, CLOCK_REALTIME);
                final long boottime = read(memory, CLOCK_BOOTTIME);
                final long after = read(memory, CLOCK_MONOTONIC);
                if (best == null || after - before < best.uncertaintyNs) {
                    best = new ClockReading(before + (after - before) / 2, realtime, boottime, after - before);
                }
            }
            return best;
        }
    }

    /**
     * CLOCK_BOOTTIME alone, in which /proc says when a process started. Any thread; allocates nothing.
     *
     * @return ns since boot
     */
    public static long bootNs() {
        return read(BOOT.get(), CLOCK_BOOTTIME);
    }

    private static long read(final Memory memory, final int clock) {
        if (LibC.clockGettime(clock, Pointer.nativeValue(memory)) != 0) {
            throw new SystemCallException("clock_gettime", Integer.toString(clock), Native.getLastError());
        }
        return memory.getLong(0) * NS_PER_S + memory.getLong(Long.BYTES);
    }
}
