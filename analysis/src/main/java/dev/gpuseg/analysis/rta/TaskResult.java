/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

/**
 * The result of an analysis for one task.
 *
 * @param name        the task
 * @param wcrtNs      bound on its response time from arrival to completion, or null: the iteration passed the
 *                    deadline, the task is best effort, or the analysis gives a verdict without bounds
 * @param deadlineNs  its relative deadline
 * @param schedulable true if the bound keeps the deadline; true for best-effort tasks (they have none that counts)
 * @param terms       what the bound is made of; null where the bound is null
 */
public record TaskResult(String name, Long wcrtNs, long deadlineNs, boolean schedulable, Terms terms) {
}
