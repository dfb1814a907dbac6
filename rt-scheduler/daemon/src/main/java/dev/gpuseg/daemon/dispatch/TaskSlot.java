/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/** What the dispatcher tells one task through its slot of the session. Dispatcher thread only, allocates nothing. */
interface TaskSlot {
    /** Answers the begin of a ticket with {@code Abi.VERDICT_*}, and wakes its thread if that waits. */
    void grant(long ticket, int verdict);

    /** Whether the next begin may return at once. */
    void pregrant(boolean pregrant);

    /** Shows {@code Abi.SEGMENT_*} to tools. */
    void state(int state);

    void countPreemption();

    void countMiss();

    void countOverrun();

    /** The task is closed: the slot may be given to another. */
    void release();
}
