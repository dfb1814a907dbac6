/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks.concurrency;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/** A slot is filled, its task id last, while a tool or the client looks at it. */
@JCStressTest
@Outcome(id = "0, .*, .*", expect = Expect.ACCEPTABLE, desc = "not published yet: the rest is not looked at")
@Outcome(id = "7, 3, 0", expect = Expect.ACCEPTABLE, desc = "published and complete")
@Outcome(id = "7, .*, .*", expect = Expect.FORBIDDEN,
    desc = "published half: the task believes in the grant or the GPU of the slot's former owner")
@State
public class TaskPublicationTest extends SharedWords {
    /** The slot as its former task left it. */
    public TaskPublicationTest() {
        words.putLong(GRANT, 9 << 8 | 1);
        words.putInt(GPU, 1);
    }

    /** The daemon opens a task. */
    @Actor
    public void daemon() {
        words.putLong(GRANT, 0);
        words.putInt(GPU, 3);
        words.putIntOrdered(TASK_ID, 7);
    }

    /** A reader looks. */
    @Actor
    public void reader(final III_Result result) {
        result.r1 = words.getIntVolatile(TASK_ID);
        result.r2 = words.getInt(GPU);
        result.r3 = (int) words.getLong(GRANT);
    }
}
