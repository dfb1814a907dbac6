/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * The one scale of priorities: 1..99 are real time and 99 is the highest (as {@code chrt} and {@code rt_priority}),
 * 0 is best effort. Every comparison of two priorities is here and nowhere else, so that "higher" cannot mean two
 * things. Stateless and thread-safe.
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
}
