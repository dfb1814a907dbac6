/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

/** How {@code gpuseg calibrate} measures the costs of a mechanism. */
public enum CalibrationMethod {
    /** It cannot: there is no cost, or no program that measures it. */
    NONE,
    /** With a virtual GPU that the command starts. */
    VIRTUAL_GPU,
    /** With CUDA kernels of its own. */
    CUDA_KERNELS,
    /** With the AMD queues of processes that run already. */
    AMD_QUEUES
}
