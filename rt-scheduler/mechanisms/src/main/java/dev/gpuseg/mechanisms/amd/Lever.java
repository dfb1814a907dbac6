/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

/** One way to take processes off the GPU. Called under the mechanism's lock. */
interface Lever extends AutoCloseable {
    Rung rung();

    /** Whether a process that has no queue yet can be taken off, so that its first ones start off. */
    boolean holdsInAdvance();

    /**
     * Takes processes off or brings them back, and sets the result of each. What is off already and is taken off
     * again, or on and brought back, is done.
     */
    void switchAll(AmdProcess[] processes, int count, boolean off);

    /** What the last {@link #switchAll} took by the kernel's own clock, locks included; -1 = it does not say. */
    default long tookNs() {
        return -1;
    }

    /**
     * Called at least every 20 ms on the enforcer's thread.
     *
     * @return true if something that was taken off may be on again
     */
    boolean beat();

    /** The same for all processes: rt-scheduler/native/amd/gpuseg_amd.h, {@code struct gpuseg_amd_held}. */
    byte[] heldPayload();

    /** Brings it back if it is off and lets go of it. */
    void forget(AmdProcess process);

    /** Brings everything back. */
    @Override
    void close();
}
