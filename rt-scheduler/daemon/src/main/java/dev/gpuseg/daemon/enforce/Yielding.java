/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

/** Whose context has a time slice so short that a begin need not wait until it is disabled. */
public enum Yielding {
    /** Its own slice, or a long one. */
    NO,
    /** Best effort. */
    BEST_EFFORT,
    /** A real-time task below the highest. */
    REAL_TIME
}
