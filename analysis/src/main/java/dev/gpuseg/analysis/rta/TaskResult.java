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
 * @param passed      what the recurrence was made of when it passed the deadline: it has no solution below their sum;
 *                    null where it did not, or where the sum cannot be said
 */
public record TaskResult(String name, Long wcrtNs, long deadlineNs, boolean schedulable, Terms terms, Terms passed) {
    /**
     * A result of which nothing is known beyond the deadline.
     *
     * @param name        as above
     * @param wcrtNs      as above
     * @param deadlineNs  as above
     * @param schedulable as above
     * @param terms       as above
     */
    public TaskResult(final String name, final Long wcrtNs, final long deadlineNs, final boolean schedulable,
        final Terms terms) {
        this(name, wcrtNs, deadlineNs, schedulable, terms, null);
    }
}
