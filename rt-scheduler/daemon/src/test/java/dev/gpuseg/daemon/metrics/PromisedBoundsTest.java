/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.metrics;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class PromisedBoundsTest {
    private static final int TASK = 3;

    private final PromisedBounds bounds = new PromisedBounds(TASK);

    @Test
    void shouldTellOfAJobAboveItsBoundOnly() {
        assertEquals(0, bounds.ended(TASK, 1_000), "nothing was promised");
        bounds.promise(TASK, 10);
        assertEquals(0, bounds.ended(TASK, 10), "it is kept to the nanosecond");
        assertEquals(10, bounds.ended(TASK, 11));
        assertEquals(1, bounds.broken());
        assertEquals(TASK, bounds.lastTask());
        assertEquals(11, bounds.lastResponseNs());
        assertEquals(10, bounds.lastBoundNs());
    }

    /** Another task was closed: its last job has delayed one that ends later. */
    @Test
    void shouldNotBlameAJobForATaskThatWasOpenWhenItBegan() {
        bounds.promise(TASK, 100);
        bounds.promise(TASK, 10);
        assertEquals(0, bounds.ended(TASK, 99));
        assertEquals(100, bounds.ended(TASK, 101));
        bounds.promise(TASK, 200);
        assertEquals(0, bounds.ended(TASK, 199), "one that is opened makes it longer at once");
        bounds.withdraw(TASK);
        bounds.promise(TASK, 10);
        assertEquals(10, bounds.ended(TASK, 11), "another task of that id");
    }

    @Test
    void shouldCompareCallsAndWaitsWhileBoundsAreByCalls() {
        assertEquals(0, bounds.called(0, 1_000), "no constant is known");
        bounds.constants(new long[] {10}, new long[] {50});
        assertEquals(0, bounds.called(0, 10));
        assertEquals(10, bounds.called(0, 11));
        assertEquals(50, bounds.waited(0, 51));
        assertEquals(2, bounds.constantsBroken());
        bounds.byCalls(false);
        assertEquals(0, bounds.called(0, 1_000), "turns need no call in time");
        assertEquals(0, bounds.waited(0, 1_000));
        bounds.byCalls(true);
        assertEquals(10, bounds.called(0, 12));
        assertEquals(3, bounds.constantsBroken());
    }
}
