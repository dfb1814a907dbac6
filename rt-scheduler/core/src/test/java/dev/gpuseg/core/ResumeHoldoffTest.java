/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** When best-effort work is disabled and enabled again: at begin, after the end, and after a resume hold-off. */
class ResumeHoldoffTest {
    private static final long HOLDOFF_NS = 500_000;
    private final SegmentScheduler s = new SegmentScheduler(
        new SchedulerConfig(FixedPriority.INSTANCE, 1, 20, 20, true, true, Unmanaged.BEST_EFFORT), new Recorder());
    private long nowNs = 1;

    ResumeHoldoffTest() {
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
    void shouldKeepBestEffortOffForTheHoldoff() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50);
        task(2, 40);
        task(3, 0);
        begin(1);
        assertFalse(s.contextDesired(2));
        end(1);
        assertTrue(s.contextDesired(1) && s.contextDesired(2), "real-time contexts are enabled at once");
        assertFalse(s.contextDesired(9) || s.contextDesired(3));
        assertEquals(nowNs + HOLDOFF_NS, s.nextTimerNs());
        s.onTimer(nowNs + HOLDOFF_NS - 1);
        assertFalse(s.contextDesired(9));
        s.onTimer(nowNs + HOLDOFF_NS);
        assertTrue(s.contextDesired(9) && s.contextDesired(3));
        assertEquals(Time.NEVER, s.nextTimerNs());
    }

    @Test
    void shouldFindThemOffStillAtTheNextBegin() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50);
        begin(1);
        end(1);
        begin(1);
        assertFalse(s.contextDesired(9));
        s.onTimer(nowNs + 2 * HOLDOFF_NS);
        assertFalse(s.contextDesired(9), "the rest before this segment is over, the segment is not");
        nowNs += 2 * HOLDOFF_NS;
        end(1);
        assertEquals(nowNs + HOLDOFF_NS, s.nextTimerNs());
    }

    @Test
    void shouldEndTheHoldoffForABestEffortSegment() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50);
        task(3, 0);
        begin(1);
        end(1);
        begin(3);
        assertTrue(s.contextDesired(3) && s.contextDesired(9));
        end(3);
        assertTrue(s.contextDesired(9), "it disabled no context, so none is held off after it");
    }

    @Test
    void shouldTreatWhoComesMeanwhileLikeTheOthers() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50);
        begin(1);
        end(1);
        s.addContext(8, 0, ContextKind.UNMANAGED);
        assertFalse(s.contextDesired(8));
        task(2, 30);
        assertTrue(s.contextDesired(2));
        s.onTimer(nowNs + HOLDOFF_NS);
        assertTrue(s.contextDesired(8));
    }

    @Test
    void shouldRefuseAHoldoffThatIsNegativeOrTooLong() {
        assertThrows(IllegalArgumentException.class,
            () -> s.setResumeHoldoff(SegmentScheduler.HOLDOFF_MAX_NS + 1, nowNs));
        assertThrows(IllegalArgumentException.class, () -> s.setResumeHoldoff(-1, nowNs));
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
