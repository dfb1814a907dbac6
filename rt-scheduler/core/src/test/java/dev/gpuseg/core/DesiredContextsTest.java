/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class DesiredContextsTest {
    private final Tables tables = new Tables();
    private final Recorder sink = new Recorder();
    private final PregrantTable pregrants = new PregrantTable(tables.segments, sink, Tables.MAX, 1);
    private final DesiredContexts desired = new DesiredContexts(tables.segments, tables.contexts, pregrants, sink,
        Tables.MAX, 1);
    private long decision;

    @BeforeEach
    void threeTasks() {
        tables.task(1, 1, 10);
        tables.task(2, 2, 20);
        tables.task(3, 3, 0);
    }

    /** One decision: this background, these exceptions, and what is enabled besides. */
    private List<Call> decide(final boolean background, final int ceiling, final int... exceptions) {
        desired.start(0, ++decision);
        desired.background(0, background);
        for (final int c : exceptions) {
            desired.except(0, c, decision);
        }
        if (ceiling < Priority.MAX) {
            desired.enableAbove(0, ceiling);
        }
        final boolean all = desired.wasBackground(0) != background;
        desired.apply(0, all, false);
        desired.apply(0, all, true);
        desired.finish(0);
        return sink.take();
    }

    @Test
    void shouldDisableAllButTheExceptionsAndTellOnlyChanges() {
        assertEquals(List.of(Call.desired(0, 1, false), Call.desired(0, 3, false)), decide(false, Priority.MAX, 2));
        assertEquals(List.of(), decide(false, Priority.MAX, 2));
        assertEquals(List.of(Call.desired(0, 2, false), Call.desired(0, 1, true)), decide(false, Priority.MAX, 1),
            "what is disabled comes first");
        assertEquals(List.of(Call.desired(0, 2, true), Call.desired(0, 3, true)), decide(true, Priority.MAX));
    }

    @Test
    void shouldFindTheExceptionsAmongTheBegunSegments() {
        tables.begin(1, 1);
        tables.begin(2, 1);
        tables.contexts.admitted[2] = true;
        desired.start(0, ++decision);
        desired.background(0, false);
        desired.except(0, Tables.order(2, 1), 2, decision);
        desired.apply(0, true, false);
        desired.apply(0, true, true);
        desired.finish(0);
        assertEquals(List.of(Call.desired(0, 1, false), Call.desired(0, 3, false)), sink.take());
        assertTrue(desired.wants(2));
        assertFalse(desired.wants(1));
    }

    @Test
    void shouldLeaveOnWhatMayNotBeDisabled() {
        tables.contexts.setSteerable(3, false);
        assertEquals(List.of(Call.desired(0, 1, false)), decide(false, Priority.MAX, 2));
        desired.set(3, false);
        assertEquals(List.of(), sink.take());
    }

    @Test
    void shouldEnableContextsOfIdleTasksAboveTheCeiling() {
        for (int t = 1; t <= 2; t++) {
            pregrants.qualify(t, 0, true);
        }
        assertEquals(List.of(Call.desired(0, 1, false), Call.desired(0, 3, false)), decide(false, 15));
        assertEquals(List.of(Call.desired(0, 1, true)), decide(false, 5), "a lower ceiling");
        tables.begin(2, 1);
        desired.touch(2);
        assertEquals(List.of(Call.desired(0, 2, false)), decide(false, 5), "its task is no longer idle");
        desired.touch(SegmentScheduler.NONE);
        tables.task(4, 1, 30);
        assertFalse(desired.wants(1), "another task shares the context");
    }

    @Test
    void shouldNotTellOfAnExceptionThatWasRemoved() {
        decide(false, Priority.MAX, 2);
        tables.contexts.unlinkTask(2, 2);
        tables.contexts.remove(2);
        assertEquals(List.of(Call.desired(0, 1, true)), decide(false, Priority.MAX, 1));
    }
}
