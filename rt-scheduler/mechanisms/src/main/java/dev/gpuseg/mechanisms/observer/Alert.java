/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.observer;

/**
 * How long threads look out, awake, for what was announced. A driver takes about 0.5 ms to schedule channels and as
 * long to disable them; to wake a chain of sleeping threads can take 0.5 ms, too, and then the process that scheduled
 * them has made its next call, which takes the driver another millisecond (H200).
 *
 * <p>Thread-safe.
 */
public final class Alert {
    private static final long NS = 2_000_000;
    /** The observer's helper, the daemon's reader and the enforcer are awake at once; as in native/observer/main.c. */
    private static final int PROCESSORS = 4;
    private static final boolean AFFORDABLE = Runtime.getRuntime().availableProcessors() >= PROCESSORS;

    private Alert() {
    }

    /**
     * Until when a thread looks out that has just been told to.
     *
     * @return CLOCK_MONOTONIC ns; 0 where there are too few processors for that
     */
    public static long untilNs() {
        return AFFORDABLE ? System.nanoTime() + NS : 0;
    }

    /**
     * Whether a thread still looks out.
     *
     * @param untilNs as it was told, or 0
     * @param nowNs   CLOCK_MONOTONIC
     * @return false after that time
     */
    public static boolean lasts(final long untilNs, final long nowNs) {
        return untilNs != 0 && nowNs - untilNs < 0;
    }
}
