/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * The one scale of priorities: 1..99 are real time and 99 is the highest (as {@code chrt} and {@code rt_priority}),
 * 0 is best effort. Every comparison of two priorities and every conversion from another scale is here and nowhere
 * else, so that "higher" cannot mean two things. Stateless and thread-safe.
 */
public final class Priority {
    /** Below every priority, best effort included: a bound that everything is higher than; never a task's priority. */
    public static final int BELOW_ALL = -1;
    /** No real-time demand. */
    public static final int BEST_EFFORT = 0;
    /** The lowest real-time priority. */
    public static final int MIN = 1;
    /** The highest real-time priority. */
    public static final int MAX = 99;

    private static final int NICE_LOWEST = 19;
    private static final int NICE_HIGHEST = -20;

    private Priority() {
    }

    /**
     * The only comparison of priorities.
     *
     * @param a a priority, or {@link #BELOW_ALL}
     * @param b a priority, or {@link #BELOW_ALL}
     * @return true if a is strictly higher than b
     */
    public static boolean isHigherThan(final int a, final int b) {
        return a > b;
    }

    /**
     * Orders two priorities, the higher one first.
     *
     * @param a a priority
     * @param b a priority
     * @return negative if a is higher, positive if b is higher, 0 if they are equal
     */
    public static int compareHigherFirst(final int a, final int b) {
        return isHigherThan(a, b) ? -1 : isHigherThan(b, a) ? 1 : 0;
    }

    /**
     * The higher one of two priorities.
     *
     * @param a a priority, or {@link #BELOW_ALL}
     * @param b a priority, or {@link #BELOW_ALL}
     * @return a or b
     */
    public static int higher(final int a, final int b) {
        return isHigherThan(b, a) ? b : a;
    }

    /**
     * Whether a priority is a real-time one.
     *
     * @param priority a priority, 0..99
     * @return true for 1..99
     */
    public static boolean isRealTime(final int priority) {
        return isHigherThan(priority, BEST_EFFORT);
    }

    /**
     * Whether a number lies on the scale.
     *
     * @param priority any number
     * @return true for 0..99
     */
    public static boolean isValid(final int priority) {
        return priority >= BEST_EFFORT && priority <= MAX;
    }

    /**
     * Refuses a number that is not on the scale.
     *
     * @param priority any number
     * @param what     the thing that has it, for the text of the error, such as {@code task 7}
     * @return the same number
     * @throws IllegalArgumentException if it is not in 0..99
     */
    public static int requireValid(final int priority, final String what) {
        if (!isValid(priority)) {
            throw new IllegalArgumentException(what + ": priority is " + priority
                + "; it must be 1..99 (99 highest) or 0 for best effort");
        }
        return priority;
    }

    /**
     * From the Linux scheduler's {@code rt_priority} ({@code sched_getparam}, {@code chrt}): the same scale.
     *
     * @param rtPriority 1..99 for SCHED_FIFO and SCHED_RR, 0 for every other class
     * @return the priority, 0..99
     * @throws IllegalArgumentException if it is not in 0..99
     */
    public static int fromLinuxRtPriority(final int rtPriority) {
        return requireValid(rtPriority, "rt_priority");
    }

    /**
     * From a nice value. Nice weighs shares of processors that are not real time, so that every one is best effort.
     *
     * @param nice -20..19
     * @return {@link #BEST_EFFORT}
     * @throws IllegalArgumentException if it is not in -20..19
     */
    public static int fromNice(final int nice) {
        if (nice < NICE_HIGHEST || nice > NICE_LOWEST) {
            throw new IllegalArgumentException("nice is " + nice + "; it must be -20..19");
        }
        return BEST_EFFORT;
    }

    /**
     * From the field {@code priority} of {@code /proc/<pid>/stat} (proc(5), field 18), which is -1 - rt_priority for
     * real-time threads, -101 for SCHED_DEADLINE and 20 + nice for all others.
     *
     * @param value -101 (deadline), -100..-2 (real time), 0..39 (other)
     * @return the priority, 0..99; a deadline thread has none on this scale and is given 99, above which the kernel
     *     itself puts it
     * @throws IllegalArgumentException if the value is none of these
     */
    public static int fromProcStat(final int value) {
        if (value == -2 - MAX) {
            return MAX;
        }
        if (value >= 0) {
            return fromNice(value + NICE_HIGHEST);
        }
        return requireRealTime(-1 - value, "/proc/<pid>/stat priority " + value);
    }

    /**
     * From the convention of the literature, in which 1 is the highest: rank 1 becomes 99, rank 99 becomes 1.
     *
     * @param rank 1..99, 1 highest
     * @return the priority, 1..99
     * @throws IllegalArgumentException if the rank is not in 1..99
     */
    public static int fromRank(final int rank) {
        return MAX + MIN - requireRealTime(rank, "rank");
    }

    /**
     * To the convention of the literature, in which 1 is the highest.
     *
     * @param priority 1..99
     * @return the rank, 1..99
     * @throws IllegalArgumentException if the priority is not in 1..99: best effort has no rank
     */
    public static int toRank(final int priority) {
        return MAX + MIN - requireRealTime(priority, "priority");
    }

    private static int requireRealTime(final int value, final String what) {
        if (value < MIN || value > MAX) {
            throw new IllegalArgumentException(what + ": " + value + " is out of range; it must be 1..99");
        }
        return value;
    }
}
