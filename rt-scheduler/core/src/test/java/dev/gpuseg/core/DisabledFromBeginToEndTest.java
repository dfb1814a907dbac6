/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** When lower work is disabled and enabled again: at begin, and after the end. */
class DisabledFromBeginToEndTest {
    private final SegmentScheduler s = new SegmentScheduler(
        new SchedulerConfig(FixedPriority.INSTANCE, 1, 20, 20, true, true, Unmanaged.BEST_EFFORT), new Recorder());
    private long nowNs = 1;

    DisabledFromBeginToEndTest() {
        s.addContext(9, 0, ContextKind.UNMANAGED);
    }

    private void task(final int t, final int priority) {
        s.addContext(t, 0, ContextKind.MANAGED);
        s.addTask(new TaskParameters(t, t, priority, 0, 0, 0, true));
    }

    private void begin(final int t) {
        nowNs += 10;
        assertEquals(Outcome.ACCEPTED, s.begin(t, nowNs, 0, 0, false, nowNs, nowNs));
    }

    private void end(final int t) {
        nowNs += 10;
        assertEquals(Outcome.ACCEPTED, s.end(t, s.ticket(t), nowNs));
    }

    @Test
    void shouldDisableOthersFromBeginToEnd() {
        task(1, 50);
        begin(1);
        assertFalse(s.contextDesired(9));
        end(1);
        assertTrue(s.contextDesired(9));
    }

    @Test
    void shouldKeepReadyWhoMayBeginOverTheRunningOne() {
        task(1, 30);
        task(2, 70);
        task(3, 20);
        begin(1);
        assertFalse(s.contextDesired(2));
        s.setKeepReady(true, nowNs);
        assertTrue(s.contextDesired(2));
        assertFalse(s.contextDesired(3) || s.contextDesired(9));
        s.setPriority(3, 80, 0, nowNs);
        assertTrue(s.contextDesired(3));
        begin(2);
        assertFalse(s.contextDesired(1));
        s.addTask(new TaskParameters(4, 3, 1, 0, 0, 0, true));
        assertFalse(s.contextDesired(3), "with two tasks neither begins without waiting");
        s.setKeepReady(false, nowNs);
        end(2);
        assertFalse(s.contextDesired(2));
    }
}
