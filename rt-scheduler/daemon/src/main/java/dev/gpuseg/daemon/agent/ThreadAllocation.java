/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import java.lang.management.ManagementFactory;

/** What the current thread has allocated so far, where the JVM counts it (HotSpot does). */
final class ThreadAllocation {
    private static final com.sun.management.ThreadMXBean THREADS = find();

    private ThreadAllocation() {
    }

    private static com.sun.management.ThreadMXBean find() {
        return ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean bean
            && bean.isThreadAllocatedMemorySupported() ? bean : null;
    }

    /**
     * Bytes allocated by the calling thread since it started.
     *
     * @return bytes, or -1 if the JVM does not count
     */
    static long bytes() {
        return THREADS == null ? -1 : THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
    }
}
