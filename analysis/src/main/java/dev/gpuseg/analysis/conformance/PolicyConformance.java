/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import dev.gpuseg.core.Policy;
import java.util.concurrent.TimeUnit;

/**
 * The conformance kit: whether a policy may decide about a GPU. It asks the policy about random segments and lets it
 * decide in the {@link dev.gpuseg.core.SegmentScheduler} that also runs live, over random sequences of events. What it
 * does not find is no proof; what it finds comes with a counterexample.
 */
public final class PolicyConformance {
    private PolicyConformance() {
    }

    /**
     * Checks a policy, on a thread of its own: one that never answers does not keep the caller.
     *
     * @param policy with its parameters
     * @param effort how hard to look
     * @return one result for each property
     * @throws InterruptedException if the caller is interrupted; the check then goes on for nothing
     */
    public static ConformanceReport verify(final Policy policy, final Effort effort) throws InterruptedException {
        final Findings findings = new Findings();
        final Thread thread = new Thread(() -> check(policy, effort, findings), "gpuseg-policy-check");
        thread.setDaemon(true);
        thread.start();
        thread.join(Math.max(1, TimeUnit.NANOSECONDS.toMillis(effort.limitNs())));
        if (thread.isAlive()) {
            final StackTraceElement[] stack = thread.getStackTrace();
            findings.add(Law.TIME, "the check did not end within " + TimeUnit.NANOSECONDS.toMillis(effort.limitNs())
                + " ms" + (stack.length == 0 ? "" : "; it is in " + stack[0]) + ", and what follows is not checked");
        }
        return new ConformanceReport(policy.name(), effort, findings.results());
    }

    private static void check(final Policy policy, final Effort effort, final Findings findings) {
        part(Law.EFFECTS, findings, () -> ClassReferences.check(policy, findings));
        part(Law.PURE, findings, () -> {
            final Questions questions = new Questions(policy, effort, findings);
            part(Law.TRANSITIVE, findings, questions::order);
            part(Law.PREGRANT_SOUND, findings, questions::pregrants);
            part(Law.WINDOWS, findings, questions::windows);
            questions.askAgain();
            part(Law.POLICY_ORDER, findings, () -> new Drives(policy, effort, findings).run());
            part(Law.TIME, findings, () -> {
                final Cost cost = new Cost();
                cost.measure(questions, findings);
                findings.require(Law.TIME, cost.sum() != Long.MIN_VALUE, () -> "no answers");
            });
            questions.askAgain();
        });
    }

    /** A policy that throws fails the law that was being checked. */
    private static void part(final Law law, final Findings findings, final Runnable check) {
        try {
            check.run();
        } catch (final RuntimeException | LinkageError | StackOverflowError | AssertionError e) {
            final StackTraceElement[] stack = e.getStackTrace();
            findings.add(law, "it throws " + e + (stack.length == 0 ? "" : " at " + stack[0]));
        }
    }
}
