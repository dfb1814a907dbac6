/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * Ends the JVM when memory is exhausted. A daemon that has lost a thread, or half a state, must not continue: the
 * watchdog and the supervisor (systemd) act on its end. The JVM does this itself for the heap
 * ({@code -XX:+ExitOnOutOfMemoryError}), but not for direct buffers. Any thread.
 */
public final class OutOfMemory {
    /** The status with which the JVM ends by itself. */
    public static final int STATUS = 3;

    private OutOfMemory() {
    }

    /**
     * Ends the JVM at once, without any clean-up, if this is its reason.
     *
     * @param error what a thread threw
     */
    public static void exitIf(final Throwable error) {
        if (error instanceof OutOfMemoryError) {
            System.err.println("gpuseg: out of memory (" + error.getMessage()
                + "); the daemon ends. Raise the limits of config/daemon.jvm, or GPUSEG_JAVA_OPTS");
            Runtime.getRuntime().halt(STATUS);
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
