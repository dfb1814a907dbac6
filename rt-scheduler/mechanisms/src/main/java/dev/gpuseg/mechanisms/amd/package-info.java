/* SPDX-License-Identifier: Apache-2.0 */
/**
 * AMD GPUs (amdgpu, KFD), experimental. The queues of another process are disabled by the better of two interfaces
 * that this kernel and these permissions allow ({@link dev.gpuseg.mechanisms.amd.ControlInterface}): the device of
 * {@code kmod-patch/amdkfd}, and UPDATE_QUEUE by the application itself. The C counterpart of this package, for the
 * watchdog, is {@code rt-scheduler/native/amd}; the agent in the application is {@code segment-api/preload}.
 *
 * <p>Source of numbers and rules: the kernel's public header {@code kfd_ioctl.h}, its driver in 6.1 and 6.12, and
 * {@code kmod-patch/amdkfd/include/gpuseg_kfd.h}. Tested: a stand-in only, never AMD hardware; what any operation costs
 * is unknown.
 */
package dev.gpuseg.mechanisms.amd;
