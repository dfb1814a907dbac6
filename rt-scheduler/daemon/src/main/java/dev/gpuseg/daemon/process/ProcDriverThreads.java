/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import dev.gpuseg.ipc.platform.ProcFile;
import dev.gpuseg.mechanisms.ProcEntries;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.IntConsumer;

/**
 * The CUDA driver's threads of processes, from /proc/PID/task. Their clocks are no way: the kernel shows a thread's
 * clock to its own process only. Not thread-safe; makes no object, save when a process ends during a search.
 *
 * <p>Source: comm of proc_pid_task(5); the first field of schedstat is the time on the CPU in ns
 * (Documentation/scheduler/sched-stats.rst). A kernel without CONFIG_SCHED_INFO has no such file, and then no time is
 * known. Name of the thread: seen with driver 580.159.04; with others unknown.
 */
final class ProcDriverThreads implements DriverThreads.Source {
    /** How the names of the driver's threads begin. */
    static final String NAME = "cuda-EvtHandlr";
    /** So many threads of a process are searched, in the order in which they were started: it may have a million. */
    private static final int SEARCHED_MAX = 1024;
    /** A name has 15 bytes, three numbers have 20 digits each. */
    private static final int FILE_BYTES = 128;
    private static final int UNKNOWN = -1;
    private static final int TEN = 10;

    private final ProcEntries entries = new ProcEntries();
    private final ProcFile file = new ProcFile("/proc", FILE_BYTES);

    @Override
    public void find(final int pid, final IntConsumer found) {
        try (ProcEntries threads = entries) {
            threads.openThreads(pid);
            for (int i = 0; i < SEARCHED_MAX && threads.next(); i++) {
                if (isNamed(pid, threads.number())) {
                    found.accept(threads.number());
                }
            }
        } catch (final IOException e) {
            return;   // it has ended, or hides its threads (hidepid): then none is known
        }
    }

    @Override
    public long usedNs(final int pid, final int tid) {
        return isNamed(pid, tid) && file.readThread(pid, tid, "schedstat") > 0 ? number(file.content()) : UNKNOWN;
    }

    private boolean isNamed(final int pid, final int tid) {
        boolean same = file.readThread(pid, tid, "comm") >= NAME.length();
        for (int i = 0; same && i < NAME.length(); i++) {
            same = file.content().get(i) == NAME.charAt(i);
        }
        return same;
    }

    private static long number(final ByteBuffer text) {
        long value = 0;
        for (int i = 0; i < text.limit() && text.get(i) >= '0' && text.get(i) <= '9'; i++) {
            value = value * TEN + text.get(i) - '0';
        }
        return value;
    }
}
