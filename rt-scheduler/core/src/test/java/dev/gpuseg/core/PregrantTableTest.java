/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class PregrantTableTest {
    private final Tables tables = new Tables();
    private final Recorder sink = new Recorder();
    private final PregrantTable pregrants = new PregrantTable(tables.segments, sink, Tables.MAX, 1);

    @BeforeEach
    void fourTasksThatQualify() {
        open(1, 10);
        open(2, 63);
        open(3, 64);
        open(4, 99);
        assertEquals(Set.of(1, 2, 3, 4), granted(true));
    }

    private void open(final int t, final int priority) {
        tables.task(t, t, priority);
        pregrants.qualify(t, 0, true);
        pregrants.refresh(t);
    }

    /** The tasks that were told about, each with this answer. */
    private Set<Integer> granted(final boolean pregranted) {
        final Set<Integer> told = new HashSet<>();
        for (final Call call : sink.take()) {
            assertEquals(Call.pregrant(call.id(), pregranted), call);
            assertTrue(told.add(call.id()), "told once");
        }
        return told;
    }

    private void bound(final int ceiling) {
        pregrants.bound(0, ceiling, SegmentScheduler.NONE, Priority.BELOW_ALL);
    }

    @Test
    void shouldTellOnlyThoseBetweenTheOldAndTheNewBound() {
        bound(63);
        assertEquals(Set.of(1, 2), granted(false), "a bound is not above itself");
        bound(64);
        assertEquals(Set.of(3), granted(false));
        bound(10);
        assertEquals(Set.of(2, 3), granted(true));
        bound(10);
        assertEquals(List.of(), sink.take());
        bound(Priority.MAX);
        assertEquals(Set.of(2, 3, 4), granted(false));
    }

    @Test
    void shouldBoundTheLeaderByTheOthersOnly() {
        pregrants.bound(0, 64, 3, 10);
        assertEquals(Set.of(1, 2), granted(false), "3 does not stand in its own way");
        pregrants.bound(0, 64, 3, 70);
        assertEquals(Set.of(3), granted(false));
        pregrants.bound(0, 64, 2, 10);
        assertEquals(Set.of(2), granted(true));
    }

    @Test
    void shouldFollowAPriorityThatChanges() {
        bound(50);
        assertEquals(Set.of(1), granted(false));
        tables.segments.gpuPriority[1] = 51;
        pregrants.relist(1);
        pregrants.refresh(1);
        assertEquals(Set.of(1), granted(true));
        assertEquals(1, pregrants.first(0, 51));
        assertEquals(SegmentScheduler.NONE, pregrants.first(0, 10));
    }

    @Test
    void shouldWithdrawFromWhoDoesNotQualifyAnyMore() {
        pregrants.qualify(2, 0, false);
        pregrants.refresh(2);
        assertEquals(Set.of(2), granted(false));
        assertFalse(pregrants.isListed(2) || pregrants.isPregranted(2));
    }

    @Test
    void shouldNotTellAboutAClosedTask() {
        pregrants.bound(0, 64, 3, 10);
        sink.take();
        pregrants.forget(3);
        assertFalse(pregrants.isPregranted(3));
        bound(Priority.BELOW_ALL);
        assertEquals(Set.of(1, 2), granted(true));
    }

    @Test
    void shouldFindPrioritiesInUseFromAnyOneOn() {
        assertEquals(10, pregrants.levelFrom(0, 0));
        assertEquals(63, pregrants.levelFrom(0, 11));
        assertEquals(64, pregrants.levelFrom(0, 64));
        assertEquals(99, pregrants.levelFrom(0, 65));
        open(5, 64);
        pregrants.forget(3);
        assertEquals(64, pregrants.levelFrom(0, 64), "another one has it");
        pregrants.forget(5);
        assertEquals(99, pregrants.levelFrom(0, 64));
        pregrants.forget(4);
        assertTrue(pregrants.levelFrom(0, 65) > Priority.MAX);
    }
}
