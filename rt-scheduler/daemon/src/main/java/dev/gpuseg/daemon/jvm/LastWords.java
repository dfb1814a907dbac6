/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import java.util.concurrent.TimeUnit;

/**
 * What a process says at its end. Whoever should read standard error may read no more: the end does not wait. An
 * instance is for what several threads that end the process would say. Thread-safe.
 */
public final class LastWords {
    private static final long LIMIT_MS = TimeUnit.SECONDS.toMillis(1);

    private boolean isSaid;

    /**
     * As {@link #say}, but of several threads only the first says its line. The others wait for it: one of them may
     * halt the process next.
     *
     * @param line without its end
     */
    public synchronized void sayOnce(final String line) {
        if (!isSaid) {
            isSaid = true;
            say(line);
        }
    }

    /**
     * Says a line on standard error, unless that takes longer than a second.
     *
     * @param line without its end
     */
    public static void say(final String line) {
        final Thread sayer = new Thread(() -> System.err.println(line), "gpuseg-last-words");
        sayer.setDaemon(true);
        sayer.start();
        try {
            sayer.join(LIMIT_MS);   // said or not, the end follows
        } catch (final InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
