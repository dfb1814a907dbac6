/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.conformance;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.function.LongSupplier;

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
        for (int i = 0; i < WARM_UP_ROUNDS; i++) {
            sum += questions.askAll();
        }
        for (int i = 0; i < ROUNDS; i++) {
            final long bytesBefore = threads.getCurrentThreadAllocatedBytes();
            sum += questions.askAll();
            bytes[i] = threads.getCurrentThreadAllocatedBytes() - bytesBefore;
        }
        Arrays.sort(bytes);
        // the least of many: what the compiler and the probe themselves allocate is not the policy's
        findings.require(Law.NO_ALLOCATION, bytes[0] <= 0, () -> bytes[0] + " bytes in " + questions.count()
            + " questions, in the best of " + ROUNDS + " rounds");
        // apart, since a mean over all would hide a slow answer to the rarer questions
        time("about two segments", questions::askAboutPairs, questions.countAboutPairs(), findings);
        time("about a segment", questions::askAboutEach, questions.countAboutEach(), findings);
        time("about an instant", questions::askAboutTimes, questions.countAboutTimes(), findings);
    }

    private void time(final String about, final LongSupplier ask, final int count, final Findings findings) {
        final long[] ns = new long[ROUNDS];
        for (int i = 0; i < ROUNDS; i++) {
            final long before = System.nanoTime();
            sum += ask.getAsLong();
            ns[i] = (System.nanoTime() - before) / count;
        }
        Arrays.sort(ns);
        findings.require(Law.TIME, ns[ROUNDS / 2] <= LIMIT_NS, () -> ns[ROUNDS / 2] + " ns a question " + about
            + ", as a median of " + ROUNDS + " rounds");
    }

    /** Depends on every answer, so that no compiler leaves a question out. */
    long sum() {
        return sum;
    }
}
