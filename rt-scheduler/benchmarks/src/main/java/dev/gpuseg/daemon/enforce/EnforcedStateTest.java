/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * An enforcer that could not disable all publishes its state, and the dispatcher reads it in the order of
 * {@code DispatcherAgent.pollEnforcers} and {@code GrantGate}: the version, then what belongs to it.
 */
@JCStressTest
@Outcome(id = {"0, 0, 0", "0, 0, 1", "0, 1, 0", "0, 1, 1"}, expect = Expect.ACCEPTABLE,
    desc = "not enforced yet: no grant")
@Outcome(id = "1, 1, 1", expect = Expect.ACCEPTABLE, desc = "enforced, known to be incomplete, with its time")
@Outcome(id = {"1, 0, 0", "1, 0, 1"}, expect = Expect.FORBIDDEN,
    desc = "a grant is journaled as enforced although a context that it outranks is enabled")
@Outcome(id = "1, 1, 0", expect = Expect.FORBIDDEN, desc = "a grant is journaled as enforced at another state's time")
@State
public class EnforcedStateTest {
    private static final EnforcerResults RESULTS = new EnforcerResults(() -> { });

    private final AppliedState applied = new AppliedState(0, null, null, RESULTS, 1);

    /** The enforcer's reconciler says how far it is. */
    @Actor
    public void enforcer() {
        applied.enforced(1, true);
    }

    /** The dispatcher has a grant that waits for version 1. */
    @Actor
    public void dispatcher(final III_Result result) {
        result.r1 = (int) applied.enforcedVersion();
        result.r2 = applied.isIncomplete() ? 1 : 0;
        result.r3 = applied.enforcedNs() == 0 ? 0 : 1;
    }
}
