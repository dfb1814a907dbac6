/* SPDX-License-Identifier: Apache-2.0 */
/**
 * AMD GPUs (amdgpu, KFD). Four ways to take the queues of another process off the hardware, the best that this kernel
 * and these permissions allow ({@link dev.gpuseg.mechanisms.amd.Rung}): the device of {@code kmod-patch/amdkfd},
 * the debugger's suspend, the checkpoint's pause, and UPDATE_QUEUE by the application itself. The C twin of this
 * package, for the watchdog, is {@code rt-scheduler/native/amd}; the agent in the application is
 * {@code segment-api/preload}.
 *
 * <p>Source of numbers and rules: the kernel's public header {@code kfd_ioctl.h}, its driver in 6.1 and 6.12, and
 * {@code kmod-patch/amdkfd/include/gpuseg_kfd.h}. No AMD hardware: tested against a stand-in only; what any operation
 * costs is unknown.
 */
package dev.gpuseg.mechanisms.amd;
