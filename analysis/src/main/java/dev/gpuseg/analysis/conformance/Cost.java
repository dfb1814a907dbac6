/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;

/** What a question costs: bytes and time. */
final class Cost {
    /** Generous: a question takes some nanoseconds. Only a policy that computes or waits for something exceeds it. */
    private static final long LIMIT_NS = 20_000;
    private static final int WARM_UP_ROUNDS = 40;
    private static final int ROUNDS = 31;

    private long sum;

    void measure(final Questions questions, final Findings findings) {
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long[] bytes = new long[ROUNDS];
        final long[] ns = new long[ROUNDS];
        for (int i = 0; i < WARM_UP_ROUNDS; i++) {
            sum += questions.askAll();
        }
        for (int i = 0; i < ROUNDS; i++) {
            final long bytesBefore = threads.getCurrentThreadAllocatedBytes();
            final long before = System.nanoTime();
            sum += questions.askAll();
            ns[i] = (System.nanoTime() - before) / questions.count();
            bytes[i] = threads.getCurrentThreadAllocatedBytes() - bytesBefore;
        }
        Arrays.sort(bytes);
        Arrays.sort(ns);
        // the least of many: what the compiler and the probe themselves allocate is not the policy's
        findings.require(Law.NO_ALLOCATION, bytes[0] <= 0, () -> bytes[0] + " bytes in " + questions.count()
            + " questions, in the best of " + ROUNDS + " rounds");
        findings.require(Law.TIME, ns[ROUNDS / 2] <= LIMIT_NS, () -> ns[ROUNDS / 2] + " ns a question, as a median of "
            + ROUNDS + " rounds");
    }

    /** Depends on every answer, so that no compiler leaves a question out. */
    long sum() {
        return sum;
    }
}
