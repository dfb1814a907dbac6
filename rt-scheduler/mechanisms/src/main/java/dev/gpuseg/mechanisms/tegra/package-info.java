/* SPDX-License-Identifier: Apache-2.0 */
/**
 * Tegra GPUs (Xavier, Orin) through the stock nvgpu driver: every TSG is a file descriptor of its process, and a
 * duplicate of it (pidfd_getfd) takes it off the runlist and back. The C twin of this package, for the watchdog, is
 * {@code rt-scheduler/native/tegra}.
 *
 * <p>Source of numbers and layouts: nvgpu's public UAPI header. Not run on a board: tested against a stand-in only.
 */
package dev.gpuseg.mechanisms.tegra;
