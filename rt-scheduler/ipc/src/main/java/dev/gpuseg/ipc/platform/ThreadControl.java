/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Native;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import org.agrona.BufferUtil;

/** Placement and scheduling of the calling thread, and locking of the process's memory. */
public final class ThreadControl {
    private static final int SCHED_OTHER = 0;
    private static final int SCHED_FIFO = 1;
    private static final int MCL_CURRENT = 1;
    private static final int MCL_FUTURE = 2;
    private static final int MCL_ONFAULT = 4;   // Linux 4.4
    private static final int MASK_BYTES = 128;
    private static final int PR_SET_TIMERSLACK = 29;
    private static final int CAP_IPC_LOCK = 14;

    private ThreadControl() {
    }

    /** The kernel's id of the calling thread; tid. */
    public static int tid() {
        return LibC.gettid();
    }

    /**
     * Binds the calling thread to one CPU.
     *
     * @param cpu from 0
     */
    public static void pinTo(final int cpu) {
        if (cpu < 0 || cpu >= MASK_BYTES * 8) {
            throw new IllegalArgumentException("cpu " + cpu + " is out of range; use 0.." + (MASK_BYTES * 8 - 1));
        }
        pinTo(CpuSet.parse(Integer.toString(cpu)));
    }

    /**
     * Binds the calling thread, and the processes and threads that it starts from now on, to some CPUs.
     *
     * @param cpus at least one, below 1024
     */
    public static void pinTo(final CpuSet cpus) {
        final ByteBuffer mask = ByteBuffer.allocateDirect(MASK_BYTES).order(ByteOrder.nativeOrder());
        mask.put(cpus.cpus().toByteArray());   // little endian by bytes, as the kernel reads it on what we run on
        if (LibC.schedSetaffinity(0, MASK_BYTES, BufferUtil.address(mask)) < 0) {
            throw new SystemCallException("sched_setaffinity", "cpu " + cpus, Native.getLastError());
        }
    }

    /**
     * Makes the calling thread real-time (SCHED_FIFO).
     *
     * @param priority 1..99, 99 highest; 0 = back to SCHED_OTHER
     */
    public static void realTime(final int priority) {
        realTime(0, priority);
    }

    /**
     * Makes a thread real-time (SCHED_FIFO).
     *
     * @param tid      the kernel's id of a thread of this process; 0 = the calling one
     * @param priority 1..99, 99 highest; 0 = back to SCHED_OTHER
     * @throws SystemCallException if there is no such thread (any more), or it is not permitted
     */
    public static void realTime(final int tid, final int priority) {
        final ByteBuffer parameter = ByteBuffer.allocateDirect(4).order(ByteOrder.nativeOrder());
        parameter.putInt(0, priority);
        final int policy = priority == 0 ? SCHED_OTHER : SCHED_FIFO;
        if (LibC.schedSetscheduler(tid, policy, BufferUtil.address(parameter)) < 0) {
            throw new SystemCallException("sched_setscheduler", "priority " + priority, Native.getLastError());
        }
    }

    /**
     * Locks this process in memory: libraries' code is loaded now; every other page stays from its first use on. So
     * what is mapped and never used, the larger part of a JVM, takes no memory.
     *
     * @throws IllegalStateException if only a part may be locked: every mapping beyond it would fail later
     */
    public static void lockMemory() {
        if (!mayLockAll()) {
            throw new IllegalStateException("RLIMIT_MEMLOCK is finite, and locking all memory needs it unlimited or "
                + "CAP_IPC_LOCK; try `ulimit -l unlimited`, or LimitMEMLOCK=infinity in the unit");
        }
        if (LibC.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) < 0) {
            throw new SystemCallException("mlockall", "all that is mapped now and later", Native.getLastError());
        }
        try {
            for (final String line : BoundedFile.lines(Path.of("/proc/self/maps"), StandardCharsets.UTF_8)) {
                final String[] words = line.split(" +", 6);   // START-END r-xp OFFSET DEVICE INODE PATH
                if (words.length == 6 && words[1].startsWith("r-x") && words[5].startsWith("/")) {
                    lock(words[0].split("-"), words[5]);
                }
            }
        } catch (final IOException e) {
            throw new IllegalStateException("/proc/self/maps: " + e.getMessage(), e);
        }
    }

    private static void lock(final String[] ends, final String path) {
        final long start = Long.parseUnsignedLong(ends[0], 16);
        if (LibC.mlock(start, Long.parseUnsignedLong(ends[1], 16) - start) < 0) {
            throw new SystemCallException("mlock", path, Native.getLastError());
        }
    }

    private static boolean mayLockAll() {
        try {
            for (final String line : BoundedFile.lines(Path.of("/proc/self/status"), StandardCharsets.UTF_8)) {
                if (line.startsWith("CapEff:")
                    && (Long.parseUnsignedLong(line.substring(7).strip(), 16) >>> CAP_IPC_LOCK & 1) != 0) {
                    return true;
                }
            }
            return BoundedFile.lines(Path.of("/proc/self/limits"), StandardCharsets.UTF_8).stream()
                .anyMatch(line -> line.startsWith("Max locked memory") && line.split("\\s+")[3].equals("unlimited"));
        } catch (final IOException e) {
            throw new IllegalStateException("/proc/self: " + e.getMessage(), e);
        }
    }

    /**
     * How late the kernel may fire the calling thread's timers (default 50000 ns).
     *
     * @param slackNs nanoseconds, positive
     */
    public static void timerSlackNs(final long slackNs) {
        if (LibC.prctl(PR_SET_TIMERSLACK, slackNs, 0, 0, 0) < 0) {
            throw new SystemCallException("prctl", "PR_SET_TIMERSLACK, " + slackNs, Native.getLastError());
        }
    }
}
