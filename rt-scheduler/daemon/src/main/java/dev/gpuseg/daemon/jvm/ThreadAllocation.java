/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import java.lang.management.ManagementFactory;

/** What the current thread has allocated so far, where the JVM counts it (HotSpot with module jdk.management does). */
public final class ThreadAllocation {
    private static final boolean COUNTED = isCounted();

    private ThreadAllocation() {
    }

    private static boolean isCounted() {
        try {
            return Counting.THREADS != null;
        } catch (final NoClassDefFoundError e) {
            return false;   // a runtime image without jdk.management
        }
    }

    /**
     * Bytes allocated by the calling thread since it started.
     *
     * @return bytes, or -1 if the JVM does not count
     */
    public static long bytes() {
        return COUNTED ? Counting.bytes() : -1;
    }

    /** Loaded only where its types exist. */
    private static final class Counting {
        static final com.sun.management.ThreadMXBean THREADS =
            ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean counting
                && counting.isThreadAllocatedMemorySupported() ? counting : null;

        static long bytes() {
            return THREADS.getThreadAllocatedBytes(Thread.currentThread().getId());
        }
    }
}
