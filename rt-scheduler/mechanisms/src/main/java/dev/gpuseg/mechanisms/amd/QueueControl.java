/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

/** Disables and enables the queues of processes through one {@link ControlInterface}. Called under the lock. */
interface QueueControl extends AutoCloseable {
    ControlInterface controlInterface();

    /** Whether a process that has no queue yet can be disabled, so that its first queues start disabled. */
    boolean coversFutureQueues();

    /** How many processes one call to the driver can carry, at least 1. */
    default int batchMax() {
        return 1;
    }

    /**
     * Disables or enables processes, and sets the result of each. Disabling a disabled process and enabling an enabled
     * one succeed.
     */
    void apply(AmdProcess[] processes, int count, boolean disable);

    /** Duration of the last {@link #apply} by the kernel's own clock, ns, locks included; -1 = it does not say. */
    default long tookNs() {
        return -1;
    }

    /**
     * Called at least every 20 ms on the enforcer's thread.
     *
     * @return true if something that was disabled may be enabled again
     */
    boolean heartbeat();

    /** The same for all processes: {@code struct gpuseg_amd_held} in rt-scheduler/native/amd/gpuseg_amd.h. */
    byte[] heldPayload();

    /** Enables a process and gives up everything that is kept for it. */
    void release(AmdProcess process);

    /** Enables everything. */
    @Override
    void close();
}
