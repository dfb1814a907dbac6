/* SPDX-License-Identifier: Apache-2.0 */
/**
 * NVIDIA GPUs through the stock driver: finds the channels of a process, whether or not it loaded a library of this
 * project, and disables and enables them.
 *
 * <p>Commands go through a duplicate of the application's own descriptor (pidfd_getfd), because RM ties a client to the
 * open file that made it. Only the commands of {@link dev.gpuseg.mechanisms.nvidia.RmCommand} can be issued; each
 * concerns the objects of one process, none the whole device. The C counterpart of this package, for the watchdog and
 * for manual use, is {@code rt-scheduler/native/rm}.
 *
 * <p>Source of numbers and layouts: NVIDIA's public driver headers, 580.x. Tested: H200, 580.159.04, 2026-11.
 */
package dev.gpuseg.mechanisms.nvidia;
