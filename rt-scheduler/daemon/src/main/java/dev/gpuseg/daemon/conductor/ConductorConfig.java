/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import dev.gpuseg.core.TaskNeed;
import dev.gpuseg.daemon.cgroup.AskingGroup;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.ClientQueue;
import dev.gpuseg.ipc.RuntimeDirectory;
import java.util.Set;
import java.util.function.IntFunction;

/**
 * Settings of the conductor.
 *
 * @param directory         where everything is, created
 * @param incarnationNs     of this daemon, CLOCK_MONOTONIC ns
 * @param gpuCount          GPUs that tasks may name, 1..16
 * @param needs             what the policy looks at, so that real-time tasks must declare it
 * @param queueBytes        size of one cycle of a client's queue, a power of two of at least 64 KiB
 * @param clientsPerUser    most clients of one uid
 * @param tasksPerUser      most open tasks of one uid
 * @param limits            what users may ask for
 * @param servedUser        uid who may connect besides the group of the socket, -1 = none
 * @param groups            control group of a process by pid, 0 for an unknown one; asked on the conductor's thread
 */
public record ConductorConfig(RuntimeDirectory directory, long incarnationNs, int gpuCount, Set<TaskNeed> needs,
    int queueBytes, int clientsPerUser, int tasksPerUser, UserLimits limits, int servedUser,
    IntFunction<AskingGroup> groups) {
    /** Refuses values out of range. */
    public ConductorConfig {
        range("gpuCount", gpuCount, 1, Abi.GPUS_MAX);
        range("queueBytes", queueBytes, ClientQueue.BYTES_MIN, ClientQueue.BYTES_MAX);
        range("clientsPerUser", clientsPerUser, 1, Abi.CLIENTS_MAX);
        range("tasksPerUser", tasksPerUser, 1, Abi.CLIENTS_MAX * Abi.SLOTS_MAX);
        if (Integer.bitCount(queueBytes) != 1) {
            throw new IllegalArgumentException("queueBytes is " + queueBytes + "; use a power of two, e.g. "
                + ClientQueue.BYTES_DEFAULT);
        }
    }

    private static void range(final String what, final int value, final int low, final int high) {
        if (value < low || value > high) {
            throw new IllegalArgumentException(what + " is " + value + "; use " + low + ".." + high);
        }
    }
}
