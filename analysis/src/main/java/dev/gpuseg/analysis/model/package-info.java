/* SPDX-License-Identifier: Apache-2.0 */
/**
 * The task model: immutable records, integer nanoseconds.
 *
 * <p>A {@link dev.gpuseg.analysis.model.TaskSet} is what a file holds and what every analysis and the simulator
 * take. Its records validate themselves: an instance that exists is legal, and no sum over one task overflows.
 */
package dev.gpuseg.analysis.model;
