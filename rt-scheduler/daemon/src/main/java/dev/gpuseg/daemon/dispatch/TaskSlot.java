/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

/**
 * What the dispatcher tells one task through its slot of the session, and what the task's program says of its kernels
 * there. Dispatcher thread only, allocates nothing.
 */
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

    /** A begin of the task is expected: lower work is about to be disabled for it, or is. */
    void expected();

    /** Whether work of the task is in flight; false if its program does not say so. */
    boolean isInFlight();

    /** Since when none is, ns; 0 if there never was any. The client may say anything. */
    long drainedNs();

    /** How long its longest kernels take lately, ns; 0 if that is not known. The client may say anything. */
    long kernelNs();

    /** {@code Abi.KERNELS_*}. The client may say anything. */
    int kernelClass();

    /** How much of the GPU's room for blocks its kernels use, per cent. The client may say anything. */
    int kernelPercent();

    /** The task is closed: the slot may be given to another. */
    void release();
}
