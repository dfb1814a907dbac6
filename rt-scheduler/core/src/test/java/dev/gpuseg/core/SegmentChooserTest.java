/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class SegmentChooserTest {
    private final Tables tables = new Tables();
    private final SegmentChooser chooser = new SegmentChooser(tables.segments, tables.contexts, Tables.MAX,
        FixedPriority.INSTANCE);
    private long decision;

    private void begun(final int t, final int c, final int priority, final long beginNs) {
        tables.task(t, c, priority);
        tables.begin(t, beginNs);
    }

    private List<Integer> byContext(final int... order) {
        chooser.markContexts(order, order.length, order[0], ++decision);
        return chosen(order, chooser.chooseByContext(order, order.length, order[0]));
    }

    private List<Integer> byGate(final int... order) {
        return chosen(order, chooser.chooseByGate(order, order.length, order[0]));
    }

    private List<Integer> chosen(final int[] order, final int first) {
        final List<Integer> chosen = new ArrayList<>();
        for (final int t : order) {
            if (chooser.isChosen(t)) {
                chosen.add(t);
            }
        }
        assertEquals(chosen.isEmpty() ? SegmentScheduler.NONE : chosen.get(0), first, "the first that is chosen");
        return chosen;
    }

    @Test
    void shouldSortByPolicyThenEarlierBeginThenLowerTask() {
        begun(1, 1, 10, 5);
        begun(2, 2, 20, 9);
        begun(3, 3, 10, 4);
        begun(4, 4, 10, 4);
        begun(5, 5, 0, 1);
        final int[] order = Tables.order(5, 4, 1, 3, 2);
        chooser.sort(order, 5);
        assertArrayEquals(new int[] {2, 3, 4, 1, 5}, order);
        chooser.policy(RoundRobin.INSTANCE);
        chooser.sort(order, 5);
        assertArrayEquals(new int[] {5, 3, 4, 1, 2}, order, "a policy without an order: first come, first served");
    }

    @Test
    void shouldLetTheLeaderRunAlone() {
        begun(1, 1, 20, 1);
        begun(2, 2, 10, 1);
        begun(3, 3, 0, 1);
        assertEquals(List.of(1), byContext(1, 2, 3));
    }

    @Test
    void shouldLetAllBestEffortSegmentsRun() {
        begun(1, 1, 0, 1);
        begun(2, 2, 0, 2);
        begun(3, 2, 0, 3);
        assertEquals(List.of(1, 2, 3), byContext(1, 2, 3), "two of them in one context");
    }

    /** The hardware cannot tell tasks of a context apart: the better one waits and lends its rank. */
    @Test
    void shouldLetWhatIsGrantedGoOnInTheLeadersContext() {
        begun(1, 1, 20, 2);
        begun(2, 1, 10, 1);
        begun(3, 2, 15, 1);
        tables.run(2);
        assertEquals(List.of(2), byContext(1, 3, 2));
    }

    @Test
    void shouldGrantOneRealTimeSegmentOfAContext() {
        begun(1, 1, 20, 1);
        begun(2, 1, 10, 1);
        assertEquals(List.of(1), byContext(1, 2));
    }

    @Test
    void shouldPassOverWhoIsHeldBack() {
        begun(1, 1, 20, 1);
        begun(2, 2, 10, 1);
        tables.contexts.blocked[1] = true;
        assertEquals(2, chooser.firstFree(Tables.order(1, 2), 2));
        chooser.markContexts(Tables.order(1, 2), 2, 2, ++decision);
        assertEquals(2, chooser.chooseByContext(Tables.order(1, 2), 2, 2));
        assertFalse(chooser.isChosen(1));
        tables.contexts.blocked[2] = true;
        assertEquals(SegmentScheduler.NONE, chooser.firstFree(Tables.order(1, 2), 2));
        chooser.chooseNone(Tables.order(1, 2), 2);
        assertFalse(chooser.isChosen(2));
    }

    @Test
    void shouldNotDisplaceWhatRunsBehindAGate() {
        begun(1, 1, 20, 2);
        begun(2, 2, 0, 1);
        begun(3, 3, 0, 3);
        tables.run(2);
        assertEquals(List.of(2), byGate(1, 2, 3), "the real-time one waits, and no other one goes before it");
        tables.segments.endSegment(2);
        assertEquals(List.of(1), byGate(1, 3));
    }

    @Test
    void shouldNotLetThePolicyBeAskedForMoreThanItSays() {
        begun(1, 1, 20, 1);
        begun(2, 2, 0, 1);
        assertFalse(chooser.admitsBackground(1));
        assertTrue(chooser.admitsBackground(2));
        assertEquals(20, chooser.pregrantCeiling(1));
        assertEquals(Priority.BELOW_ALL, chooser.pregrantCeiling(2));
    }
}
