/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.domains.DomainContextBase;

/** Random histories. */
public final class Histories extends DomainContextBase {
    private static final int LENGTH = 90;

    /** Over the plain policies, all modes and events. */
    @Provide
    public Arbitrary<History> histories() {
        return of(Arbitraries.frequency(Tuple.of(4, "fp"), Tuple.of(4, "edf"), Tuple.of(1, "rr")), false);
    }

    static Arbitrary<History> of(final Arbitrary<String> policies, final boolean wide) {
        final Arbitrary<Action> action = Combinators.combine(
            Arbitraries.frequency(
                Tuple.of(36, Action.Op.BEGIN), Tuple.of(16, Action.Op.END), Tuple.of(4, Action.Op.CANCEL),
                Tuple.of(5, Action.Op.TIMER), Tuple.of(12, Action.Op.ADD_TASK), Tuple.of(3, Action.Op.REMOVE_TASK),
                Tuple.of(5, Action.Op.ADD_CONTEXT), Tuple.of(2, Action.Op.REMOVE_CONTEXT),
                Tuple.of(2, Action.Op.SET_KIND), Tuple.of(5, Action.Op.SET_PRIORITY),
                Tuple.of(2, Action.Op.SET_POLICY)),
            Arbitraries.integers().between(0, 1000).withoutEdgeCases(),
            // Few levels, so that equal priorities are common.
            Arbitraries.frequency(Tuple.of(3, 0), Tuple.of(2, 10), Tuple.of(2, 20), Tuple.of(2, 30), Tuple.of(1, 99)),
            Arbitraries.integers().between(0, 120).withoutEdgeCases(),
            Arbitraries.integers().between(0, 1000).withoutEdgeCases(),
            Arbitraries.integers().between(0, 12).withoutEdgeCases()
        ).as(Action::new);
        return Combinators.combine(
            policies,
            Arbitraries.frequency(Tuple.of(3, true), Tuple.of(2, false)),
            Arbitraries.frequency(Tuple.of(3, true), Tuple.of(1, false)),
            Arbitraries.of(Unmanaged.class),
            action.list().ofSize(LENGTH),
            Arbitraries.of(true, false)
        ).as((policy, preemptive, optimistic, unmanaged, actions, keepReady) ->
            new History(policy, preemptive, optimistic, unmanaged, actions, wide, keepReady));
    }
}
