/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Provide;
import net.jqwik.api.Tuple;
import net.jqwik.api.domains.DomainContextBase;

/** Random histories with partitions, classes, windows and actions on overrun. */
public final class WideHistories extends DomainContextBase {
    /** Over all policies, modes and events. */
    @Provide
    public Arbitrary<History> wideHistories() {
        return Histories.of(Arbitraries.frequency(Tuple.of(3, "fp"), Tuple.of(2, "edf"), Tuple.of(1, "rr"),
            Tuple.of(3, "classes"), Tuple.of(4, "partitions-fp"), Tuple.of(4, "partitions-edf")), true);
    }
}
