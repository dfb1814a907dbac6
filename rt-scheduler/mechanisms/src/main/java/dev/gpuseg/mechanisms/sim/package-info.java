/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The virtual GPU of {@code rt-scheduler/native/vgpu}, for demonstrations and tests. Its results are simulated and
 * labelled so. The C counterpart of this package, for the watchdog, is
 * {@code rt-scheduler/native/watchdog/mechanism_sim.c}.
 */
package dev.gpuseg.mechanisms.sim;
