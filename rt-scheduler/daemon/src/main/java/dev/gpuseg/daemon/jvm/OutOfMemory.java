/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import java.lang.management.ManagementFactory;

/**
 * Ends the JVM when memory is exhausted. A daemon that has lost a thread, or half a state, must not continue: the
 * watchdog and the supervisor (systemd) act on its end. The JVM does this itself for the heap
 * ({@code -XX:+ExitOnOutOfMemoryError}), but not for direct buffers. Any thread.
 */
public final class OutOfMemory {
    /** The status with which the JVM ends by itself. */
    public static final int STATUS = 3;

    /** Below this the kernel may kill the daemon without a word; docs/containers.md has what was measured. */
    static final long ENOUGH_BYTES = 384L << 20;

    private OutOfMemory() {
    }

    /**
     * Whether the memory of this machine, or of its control group, suffices for a daemon.
     *
     * @return one line; empty if it does, or if the JVM does not say how much there is
     */
    public static String warning() {
        try {
            return warning(Memory.totalBytes());
        } catch (final NoClassDefFoundError e) {
            return "";   // a runtime image without jdk.management
        }
    }

    static String warning(final long totalBytes) {
        return totalBytes >= ENOUGH_BYTES ? "" : "this machine, or its control group, has " + (totalBytes >> 20)
            + " MiB of memory, and the daemon needs " + (ENOUGH_BYTES >> 20) + " MiB and 1.1 MiB for each client; "
            + "the kernel may kill it. Raise the limit";
    }

    /**
     * Ends the JVM at once, without any clean-up, if this is its reason.
     *
     * @param error what a thread threw
     */
    public static void exitIf(final Throwable error) {
        if (error instanceof OutOfMemoryError) {
            try {
                LastWords.say("gpuseg: out of memory (" + error.getMessage()
                    + "); the daemon ends. Raise the limits of config/daemon.jvm, or GPUSEG_JAVA_OPTS");
            } finally {
                Runtime.getRuntime().halt(STATUS);   // also if there is no memory for the words
            }
        }
    }

    /** Loaded only where its types exist. */
    private static final class Memory {
        static long totalBytes() {
            return ManagementFactory.getPlatformMXBean(com.sun.management.OperatingSystemMXBean.class)
                .getTotalMemorySize();
        }
    }

    /** From now on, a thread that ends with an {@link OutOfMemoryError} ends the JVM. */
    public static void watchThreads() {
        final Thread.UncaughtExceptionHandler before = Thread.getDefaultUncaughtExceptionHandler();
        Thread.setDefaultUncaughtExceptionHandler((thread, error) -> {
            exitIf(error);
            if (before != null) {
                before.uncaughtException(thread, error);
            } else {
                System.err.print("gpuseg: thread " + thread.getName() + ": ");
                error.printStackTrace();
            }
        });
    }
}
