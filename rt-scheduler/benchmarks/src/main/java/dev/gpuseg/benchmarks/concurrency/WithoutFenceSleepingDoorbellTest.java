/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks.concurrency;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** {@link SleepingDoorbellTest} without the fences: shows that they are needed. */
@JCStressTest
@Outcome(id = "1, 1", expect = Expect.ACCEPTABLE, desc = "both see each other: one wake-up too many, harmless")
@Outcome(id = {"0, 1", "1, 0"}, expect = Expect.ACCEPTABLE, desc = "one sees the other")
@Outcome(id = "0, 0", expect = Expect.ACCEPTABLE_INTERESTING, desc = "lost wake-up, as expected without fences")
@State
public class WithoutFenceSleepingDoorbellTest extends SharedWords {
    /** The daemon. */
    @Actor
    public void daemon(final II_Result result) {
        words.putIntOrdered(SLEEPING, 1);
        result.r1 = words.getIntVolatile(HEADER) != 0 ? 1 : 0;
    }

    /** The client. */
    @Actor
    public void client(final II_Result result) {
        words.putIntOrdered(HEADER, 64);
        result.r2 = words.getIntVolatile(SLEEPING);
    }
}
