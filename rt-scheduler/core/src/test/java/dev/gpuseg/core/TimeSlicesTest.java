/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class TimeSlicesTest {
    private static final long BASE_NS = 2_000_000;

    private final Tables tables = new Tables();
    private final List<String> told = new ArrayList<>();
    private final Recorder sink = new Recorder() {
        @Override
        public void onTimeslice(final int gpu, final int contextId, final long timesliceNs) {
            told.add(contextId + "=" + timesliceNs);
        }
    };
    private final TimeSlices slices = slices(true);

    private TimeSlices slices(final boolean preemptive) {
        return new TimeSlices(tables.contexts, tables.shares, sink, new SchedulerConfig(FixedPriority.INSTANCE, 1,
            Tables.MAX, Tables.MAX, preemptive, true, Unmanaged.BEST_EFFORT));
    }

    private List<String> refresh() {
        told.clear();
        slices.refresh();
        return told;
    }

    @BeforeEach
    void twoContextsOfUnequalWeight() {
        tables.context(1);
        tables.context(2);
        tables.shares.setWeight(2, 300);
        tables.shares.sharing(Sharing.TIMESLICES);
        slices.base(BASE_NS);
    }

    @Test
    void shouldGiveSlicesInProportionToWeightsAndTellChangesOnly() {
        assertEquals(List.of("1=2000000", "2=6000000"), refresh());
        assertEquals(List.of(), refresh());
        tables.shares.setWeight(2, 50);
        assertEquals(List.of("2=1000000"), refresh());
    }

    @Test
    void shouldDivideTheSliceOfAGroupAmongItsContexts() {
        tables.context(3);
        tables.contexts.group[3] = 2;
        assertEquals(List.of("1=2000000", "2=3000000", "3=3000000"), refresh());
    }

    @Test
    void shouldNotMakeASliceTooShortToBeSet() {
        tables.shares.setWeight(1, 1);
        slices.base(100_000);
        assertEquals(List.of("1=10000", "2=300000"), refresh());
    }

    @Test
    void shouldGiveBackEveryContextsOwnSliceOnce() {
        refresh();
        tables.shares.sharing(Sharing.TURNS);
        assertEquals(List.of("1=0", "2=0"), refresh());
        assertEquals(List.of(), refresh());
    }

    @Test
    void shouldGiveOwnSlicesBackWhenNoClaimIsUnusual() {
        refresh();
        tables.shares.setWeight(2, FairShares.WEIGHT_DEFAULT);
        assertEquals(List.of("1=0", "2=0"), refresh());
    }

    @Test
    void shouldSetTheSliceOfAnIdThatIsUsedAgain() {
        refresh();
        tables.contexts.remove(2);
        tables.context(2);
        slices.reset(2);
        assertEquals(List.of("2=6000000"), refresh());
    }

    @Test
    void shouldSetNoneAtTheGate() {
        final TimeSlices gate = slices(false);
        gate.base(BASE_NS);
        gate.refresh();
        assertEquals(List.of(), told);
    }
}
