/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;

/**
 * CPU time of other processes, and of threads of this one, by their CPU-time clocks: one system call of about a
 * microsecond, to the nanosecond, without a file. Not thread-safe; allocates only itself.
 *
 * <p>Source: clock_getcpuclockid(3); the number of the clock of process P is {@code ~P << 3 | CPUCLOCK_SCHED}, that of
 * a thread has CPUCLOCK_PERTHREAD_MASK besides (include/linux/posix-timers.h).
 */
public final class ProcessCpuTime {
    /** {@link #readNs}: there is no such process. */
    public static final long GONE = -1;
    private static final int CPUCLOCK_SCHED = 2;
    private static final int CPUCLOCK_PERTHREAD = 4;
    private static final int PID_SHIFT = 3;
    private static final long NS_PER_S = 1_000_000_000L;
    private static final int TIMESPEC = 16;

    private final Memory memory = new Memory(TIMESPEC);

    /**
     * What a process has used since its start, all of its threads together.
     *
     * @param pid the process, as this process sees it
     * @return user and system time, ns; {@link #GONE} if there is no such process
     */
    public long readNs(final int pid) {
        return clockNs(~pid << PID_SHIFT | CPUCLOCK_SCHED);
    }

    /**
     * What a thread of this process has used since its start.
     *
     * @param tid the kernel's id of the thread
     * @return user and system time, ns; {@link #GONE} if there is no such thread in this process
     */
    public long threadNs(final int tid) {
        return clockNs(~tid << PID_SHIFT | CPUCLOCK_PERTHREAD | CPUCLOCK_SCHED);
    }

    private long clockNs(final int clock) {
        if (LibC.clockGettime(clock, Pointer.nativeValue(memory)) != 0) {
            return GONE;
        }
        return memory.getLong(0) * NS_PER_S + memory.getLong(Long.BYTES);
    }
}
