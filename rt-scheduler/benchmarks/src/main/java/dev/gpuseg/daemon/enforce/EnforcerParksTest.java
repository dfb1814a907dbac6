/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A new desired state against an enforcer that parks, with the daemon's own classes and in the order of
 * {@code DispatcherAgent} and {@code Enforcer.announcePark}.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = Expect.ACCEPTABLE, desc = "both see each other: one wake-up too many, harmless")
@Outcome(id = {"0, 1", "1, 0"}, expect = Expect.ACCEPTABLE, desc = "one sees the other")
@Outcome(id = "0, 0", expect = Expect.FORBIDDEN,
    desc = "lost wake-up: the enforcer sleeps although a newer state is published; a granted segment waits 20 ms")
@State
public class EnforcerParksTest {
    private final DesiredState desired = new DesiredState(3);
    private final SleepFlag parked = new SleepFlag();
    private final long applied = desired.commit();

    /** The dispatcher decides. */
    @Actor
    public void dispatcher(final II_Result result) {
        desired.set(1, false);
        desired.set(2, true);
        desired.commit();
        result.r1 = parked.mustWake() ? 1 : 0;
    }

    /** The enforcer has nothing to do. */
    @Actor
    public void enforcer(final II_Result result) {
        parked.announce();
        result.r2 = desired.isNewerThan(applied) ? 1 : 0;
    }
}
