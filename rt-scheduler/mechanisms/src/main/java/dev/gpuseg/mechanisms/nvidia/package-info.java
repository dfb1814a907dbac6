/* SPDX-License-Identifier: Apache-2.0 */
/**
 * NVIDIA GPUs through the stock driver: finds the channels of a process, whether or not it loaded anything of ours, and
 * takes them off the hardware and back.
 *
 * <p>A control goes through a duplicate of the application's own descriptor (pidfd_getfd), because RM ties a client to
 * the open file that made it. The commands that can be issued at all are those of
 * {@link dev.gpuseg.mechanisms.nvidia.RmCommand}; each concerns the objects of one process, none the device.
 * The C twin of this package, for the watchdog and by hand, is {@code rt-scheduler/native/rm}.
 *
 * <p>Source of numbers and layouts: NVIDIA's public driver headers, 580.x. Tested: H200, 580.159.04, 2026-11.
 */
package dev.gpuseg.mechanisms.nvidia;
