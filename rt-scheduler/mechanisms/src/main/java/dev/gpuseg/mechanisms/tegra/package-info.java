/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tegra GPUs (Xavier, Orin) through the stock nvgpu driver, experimental. Every TSG is a file descriptor of its
 * process, and ioctls on a duplicate of it (pidfd_getfd) disable and enable the TSG. The C counterpart of this package,
 * for the watchdog, is {@code rt-scheduler/native/tegra}.
 *
 * <p>Source of numbers and layouts: nvgpu's public UAPI header. Tested: a stand-in only, never a board.
 */
package dev.gpuseg.mechanisms.tegra;
