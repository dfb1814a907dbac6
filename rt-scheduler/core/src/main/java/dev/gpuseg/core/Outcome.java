/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

/**
 * What became of an event given to the {@link SegmentScheduler}. A refused event changes nothing
 * (but see {@link #SKIPPED}).
 */
public final class Outcome {
    /** The event was taken. */
    public static final int ACCEPTED = 0;
    /** No such task is open. */
    public static final int UNKNOWN_TASK = 1;
    /** The ticket is one that the task already used (or is not positive). */
    public static final int OLD_TICKET = 2;
    /** Begin: the task has a begun segment; it must end or be cancelled first. */
    public static final int ALREADY_BEGUN = 3;
    /** End or cancel: the task never began a segment of that ticket. */
    public static final int NOT_BEGUN = 4;
    /** Begin: refused, because the segment before it overran and its task skips the next one. The ticket is used up. */
    public static final int SKIPPED = 5;

    private static final String[] NAMES =
        {"accepted", "unknown-task", "old-ticket", "already-begun", "not-begun", "skipped"};

    private Outcome() {
    }

    /**
     * The name of an outcome, for counters and messages.
     *
     * @param outcome one of the constants of this class
     * @return a constant name such as {@code old-ticket}
     * @throws ArrayIndexOutOfBoundsException if it is none of them
     */
    public static String name(final int outcome) {
        return NAMES[outcome];
    }
}
