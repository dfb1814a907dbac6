/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HeldBackTest {
    private static final long MS = 1_000_000;

    /** Windows as a test wants them, around fixed priorities. */
    private static final class Windows implements Policy {
        private int openPartition;
        private boolean lends;

        @Override
        public String name() {
            return "windows";
        }

        @Override
        public int compare(final SegmentView a, final SegmentView b) {
            return FixedPriority.INSTANCE.compare(a, b);
        }

        @Override
        public boolean mayRunBeside(final SegmentView leader, final SegmentView other) {
            return FixedPriority.INSTANCE.mayRunBeside(leader, other);
        }

        @Override
        public boolean admitsBackground(final SegmentView leader) {
            return FixedPriority.INSTANCE.admitsBackground(leader);
        }

        @Override
        public int pregrantCeiling(final SegmentView begun) {
            return FixedPriority.INSTANCE.pregrantCeiling(begun);
        }

        @Override
        public boolean isTimed() {
            return true;
        }

        @Override
        public boolean isOpen(final int partition, final long nowNs) {
            return partition == openPartition;
        }

        @Override
        public boolean lendsIdle(final long nowNs) {
            return lends;
        }
    }

    private final Tables tables = new Tables();
    private final HeldBack heldBack = new HeldBack(tables.segments, tables.contexts, tables.shares, 1,
        FixedPriority.INSTANCE);
    private long decision;

    @BeforeEach
    void threeContexts() {
        for (int t = 1; t <= 3; t++) {
            tables.task(t, t, 0);
        }
    }

    private List<Integer> byTime(final int... begun) {
        heldBack.byTime(0, begun, begun.length, ++decision, 1);
        return blocked();
    }

    private List<Integer> blocked() {
        final List<Integer> blocked = new ArrayList<>();
        for (int c = 1; c <= 3; c++) {
            if (tables.contexts.blocked[c]) {
                blocked.add(c);
            }
        }
        return blocked;
    }

    private void partitions(final int... ofContexts) {
        for (int c = 1; c <= 3; c++) {
            tables.contexts.partition[c] = ofContexts[c - 1];
        }
    }

    @Test
    void shouldHoldNobodyBackByDefault() {
        assertFalse(heldBack.isPossible(0));
        assertEquals(List.of(), byTime(1, 2, 3));
    }

    @Test
    void shouldHoldBackContextsWhosePartitionIsClosed() {
        final Windows windows = new Windows();
        heldBack.policy(windows);
        assertTrue(heldBack.isPossible(0));
        partitions(1, 1, 2);
        windows.openPartition = 1;
        assertEquals(List.of(3), byTime(1, 3));
        windows.openPartition = 2;
        assertEquals(List.of(1, 2), byTime(1, 3), "begun or not");
    }

    @Test
    void shouldLendAWindowThatNobodyUses() {
        final Windows windows = new Windows();
        heldBack.policy(windows);
        partitions(1, 1, 2);
        windows.openPartition = 2;
        windows.lends = true;
        assertEquals(List.of(), byTime(1, 2), "no segment of its partition is begun");
        assertEquals(List.of(1, 2), byTime(1, 2, 3));
        heldBack.suspend(3);
        assertEquals(List.of(3), byTime(1, 2, 3), "its only segment is suspended");
    }

    @Test
    void shouldHoldBackASuspendedSegmentsContextUntilTheLastIsLetGo() {
        tables.task(4, 1, 0);
        heldBack.suspend(1);
        heldBack.suspend(4);
        assertTrue(heldBack.isPossible(0));
        assertEquals(List.of(1), byTime(1, 2, 4));
        heldBack.letGo(1);
        heldBack.letGo(1);
        assertEquals(List.of(1), byTime(2, 4));
        heldBack.letGo(4);
        assertFalse(heldBack.isPossible(0));
        assertEquals(List.of(), byTime(2));
    }

    @Test
    void shouldHoldBackGroupsThatDoNotHaveTheTurn() {
        tables.shares.setWeight(2, 300);
        assertTrue(heldBack.isPossible(0));
        byTime(1, 2);
        heldBack.byTurn(0, decision, MS);
        assertEquals(List.of(2), blocked(), "equal virtual time: the lower group; the third is idle and competes not");
        assertEquals(MS + FairShares.QUANTUM_DEFAULT_NS, tables.shares.nextNs(0));
        tables.shares.charge(0, MS + FairShares.QUANTUM_DEFAULT_NS);
        byTime(1, 2);
        heldBack.byTurn(0, decision, MS + FairShares.QUANTUM_DEFAULT_NS);
        assertEquals(List.of(1), blocked());
    }

    @Test
    void shouldCountAnUnmanagedContextAsCompeting() {
        tables.shares.setWeight(3, 300);
        tables.contexts.kind[3] = ContextKind.UNMANAGED;
        byTime(1);
        heldBack.byTurn(0, decision, MS);
        assertEquals(List.of(3), blocked());
    }

    @Test
    void shouldNotGiveTheTurnToWhoIsHeldBackAnyway() {
        tables.shares.setWeight(2, 300);
        heldBack.suspend(1);
        byTime(1, 2);
        heldBack.byTurn(0, decision, MS);
        assertEquals(List.of(1), blocked());
    }

    @Test
    void shouldForgetTurnsWhenNobodyIsHeldBackAnyMore() {
        tables.shares.setWeight(2, 300);
        byTime(1, 2);
        heldBack.byTurn(0, decision, MS);
        heldBack.letAllGo(0);
        assertEquals(List.of(), blocked());
        assertEquals(Time.NEVER, tables.shares.nextNs(0));
        tables.shares.setWeight(2, FairShares.WEIGHT_DEFAULT);
        byTime(1, 2);
        heldBack.byTurn(0, decision, 2 * MS);
        assertEquals(List.of(), blocked());
    }
}
