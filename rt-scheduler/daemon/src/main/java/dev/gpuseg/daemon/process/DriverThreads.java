/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.process;

import java.util.function.IntConsumer;

/**
 * What the CUDA driver's own threads used of a process's CPU time, from look to look. The driver starts a thread that
 * wakes every 8 ms, whether the process has GPU work or not.
 *
 * <p>Threads are known by name, and any process can name its threads so. The answer may thus be more than the driver
 * used, and is fit only for questions where a lie gains the process nothing but what {@link IdleProcesses} says.
 *
 * <p>Nothing is counted of a thread until two looks in a row have seen it: what it used before the first of them may
 * have been before the last look. One thread; makes no object after itself.
 */
final class DriverThreads {
    /** Of one process; further ones are threads like all others. One is usual. */
    static final int THREADS_MAX = 16;
    /** Looks from one search to the next, five seconds. A search reads the name of each thread of the process. */
    static final int SEARCH_LOOKS = 25;

    /** Where threads and their times are found. */
    interface Source {
        /**
         * Finds the driver's threads of a process.
         *
         * @param pid   the process
         * @param found receives the kernel's id of each; asks for {@link #usedNs} meanwhile
         */
        void find(int pid, IntConsumer found);

        /**
         * CPU time of one of them since its start.
         *
         * @param pid the process
         * @param tid the kernel's id of the thread
         * @return ns; negative if it is unknown, has ended, or does not have the driver's name
         */
        long usedNs(int pid, int tid);
    }

    private final Source source;
    private final int pid;
    private final int[] tids = new int[THREADS_MAX];
    private final long[] usedNs = new long[THREADS_MAX];
    private final IntConsumer found = this::add;
    private int count;
    /** Whether {@link #usedNs} is from the last look. */
    private boolean isFresh;
    private long searchAtLook = Long.MIN_VALUE;

    /**
     * Knows no thread yet.
     *
     * @param source of threads and times
     * @param pid    the process
     */
    DriverThreads(final Source source, final int pid) {
        this.source = source;
        this.pid = pid;
    }

    /**
     * A look. Threads that have ended are forgotten.
     *
     * @return CPU time of the known threads since the last look, ns; 0 if that one was skipped
     */
    long look() {
        long sumNs = 0;
        int kept = 0;
        for (int i = 0; i < count; i++) {
            final int tid = tids[i];
            final long nowNs = source.usedNs(pid, tid);
            if (nowNs >= 0) {
                sumNs += isFresh ? Math.max(0, nowNs - usedNs[i]) : 0;   // less than before: another one with this id
                tids[kept] = tid;
                usedNs[kept] = nowNs;
                kept++;
            }
        }
        count = kept;
        isFresh = true;
        return sumNs;
    }

    /** A look that does not ask. */
    void skip() {
        isFresh = false;
    }

    /**
     * Searches for threads that are not known yet, unless the last search was less than {@value #SEARCH_LOOKS} looks
     * ago. They count from the next look on.
     *
     * @param look number of this look, for which {@link #look} was called before
     */
    void search(final long look) {
        if (look >= searchAtLook) {
            searchAtLook = look + SEARCH_LOOKS;
            source.find(pid, found);
        }
    }

    private void add(final int tid) {
        if (count == THREADS_MAX || isKnown(tid)) {
            return;
        }
        final long nowNs = source.usedNs(pid, tid);
        if (nowNs >= 0) {
            tids[count] = tid;
            usedNs[count] = nowNs;
            count++;
        }
    }

    private boolean isKnown(final int tid) {
        for (int i = 0; i < count; i++) {
            if (tids[i] == tid) {
                return true;
            }
        }
        return false;
    }
}
