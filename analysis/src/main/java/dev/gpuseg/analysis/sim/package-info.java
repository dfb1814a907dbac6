/* SPDX-License-Identifier: Apache-2.0 */
/**
 * An event-driven simulator with exact integer time. It runs the scheduler core that runs live
 * ({@link dev.gpuseg.core.SegmentScheduler}) and models what surrounds it: partitioned cores, threads that suspend or
 * spin, the enforcer with its cost per runlist update, and the GPU with its time slices.
 */
package dev.gpuseg.analysis.sim;
