/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import java.util.List;
import java.util.Objects;

/**
 * The result of an analysis for one chain. Bounds are sums of {@link Step}s.
 *
 * @param name     of the chain
 * @param reaction from an event at the input to the end of the first job of the last task that reflects it
 * @param age      from the read of a sample to the end of the last job of the last task that uses it
 * @param steps    one for each task, from the input to the output; empty if there is no bound
 * @param problem  why there is no bound; empty if there is one
 */
public record ChainResult(String name, Latency reaction, Latency age, List<Step> steps, String problem) {
    /**
     * A latency and its limit.
     *
     * @param boundNs    bound in nanoseconds, or null: there is none
     * @param deadlineNs limit in nanoseconds, 0 = none
     */
    public record Latency(Long boundNs, long deadlineNs) {
        /** Whether the limit is kept; true if there is no limit, or the bound is at most the limit. */
        public boolean holds() {
            return deadlineNs == 0 || boundNs != null && boundNs <= deadlineNs;
        }
    }

    /**
     * What one task contributes.
     *
     * @param task       its name
     * @param edge       how the data reach it: {@code input}, {@code sampling} or {@code event}
     * @param waitNs     longest time that the data wait for it to take a sample; 0 after an event edge
     * @param responseNs what its response adds
     * @param inAge      whether the wait counts for the age; that of the last sample does not
     */
    public record Step(String task, String edge, long waitNs, long responseNs, boolean inAge) {
        /** Wait and response together; nanoseconds. */
        public long totalNs() {
            return Math.addExact(waitNs, responseNs);
        }
    }

    /** Copies the list. */
    public ChainResult {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(reaction, "reaction");
        Objects.requireNonNull(age, "age");
        Objects.requireNonNull(problem, "problem");
        steps = List.copyOf(steps);
    }

    /** Whether both limits are kept. */
    public boolean schedulable() {
        return reaction.holds() && age.holds();
    }

    /**
     * The task that contributes most to the reaction time, the first of several.
     *
     * @return its step, null if there is no bound
     */
    public Step dominant() {
        Step largest = null;
        for (final Step step : steps) {
            if (largest == null || step.totalNs() > largest.totalNs()) {
                largest = step;
            }
        }
        return largest;
    }
}
