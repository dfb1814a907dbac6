/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks.concurrency;

import java.lang.invoke.VarHandle;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A grant against a client that goes to sleep. The daemon writes the grant, then looks whether a thread waits; the
 * client says that it waits, then looks at the grant once more before its futex wait.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = Expect.ACCEPTABLE, desc = "both see each other: one wake-up too many, harmless")
@Outcome(id = {"0, 1", "1, 0"}, expect = Expect.ACCEPTABLE, desc = "one sees the other")
@Outcome(id = "0, 0", expect = Expect.FORBIDDEN,
    desc = "lost wake-up: the client sleeps with its grant, the GPU is held and not used")
@State
public class GrantOrWaitTest extends SharedWords {
    /** The daemon. */
    @Actor
    public void daemon(final II_Result result) {
        words.putLongOrdered(GRANT, 1 << 8 | 1);
        VarHandle.fullFence();
        result.r1 = words.getIntVolatile(WAITING);
    }

    /** The client. */
    @Actor
    public void client(final II_Result result) {
        words.putIntOrdered(WAITING, 1);
        VarHandle.fullFence();
        result.r2 = words.getLongVolatile(GRANT) != 0 ? 1 : 0;
    }
}
