/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.space;

/**
 * How the multiprocessors of a GPU are divided among the clients of one MPS server. A limit of MPS is a number of
 * multiprocessors, not a place: the reserve is free as long as the limits of all that runs leave it together.
 *
 * @param reservePercent what best effort and long real-time work leave free, 1..90 percent
 * @param places         how many best-effort programs share the rest, each an equal part of it, 1..64
 */
public record Space(int reservePercent, int places) {
    /** The largest reserve, percent. */
    public static final int RESERVE_MAX = 90;
    /** The reserve of a daemon that is told none, percent. */
    public static final int RESERVE_DEFAULT = 12;
    /** The most places. */
    public static final int PLACES_MAX = 64;
    private static final int WHOLE = 100;

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if one is out of its range, or no place has a whole percent
     */
    public Space {
        if (reservePercent < 1 || reservePercent > RESERVE_MAX) {
            throw new IllegalArgumentException("space-reserve is " + reservePercent + "%; use 1%.." + RESERVE_MAX
                + "%");
        }
        if (places < 1 || places > PLACES_MAX || (WHOLE - reservePercent) / places < 1) {
            throw new IllegalArgumentException("space-places is " + places + "; use 1.." + Math.min(PLACES_MAX,
                WHOLE - reservePercent) + ", so that each has one percent at least");
        }
    }

    /** What a real-time program without a reserve may use, percent. */
    public int longPercent() {
        return WHOLE - reservePercent;
    }

    /** What one best-effort program may use, percent, rounded down. */
    public int placePercent() {
        return longPercent() / places;
    }
}
