/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/** Receives processes that have work on a GPU and were never attached. On a thread of the mechanism; never blocks. */
@FunctionalInterface
public interface ProcessListener {
    /**
     * A process has work on the GPU.
     *
     * @param pid        its pid
     * @param startTicks field 22 of /proc/pid/stat
     * @param name       as the kernel keeps it
     */
    void found(int pid, long startTicks, String name);
}
