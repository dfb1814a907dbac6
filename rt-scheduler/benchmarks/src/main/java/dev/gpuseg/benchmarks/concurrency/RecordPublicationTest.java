/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.benchmarks.concurrency;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/** A record is written, its header last, while the daemon polls. */
@JCStressTest
@Outcome(id = "0, .*", expect = Expect.ACCEPTABLE, desc = "not there yet")
@Outcome(id = "64, 5", expect = Expect.ACCEPTABLE, desc = "there and whole")
@Outcome(id = "64, 0", expect = Expect.FORBIDDEN, desc = "torn record: the wrong task is scheduled")
@State
public class RecordPublicationTest extends SharedWords {
    /** The client appends. */
    @Actor
    public void client() {
        words.putInt(RECORD, 5);
        words.putIntOrdered(HEADER, 64);
    }

    /** The daemon polls. */
    @Actor
    public void daemon(final II_Result result) {
        result.r1 = words.getIntVolatile(HEADER);
        result.r2 = words.getInt(RECORD);
    }
}
