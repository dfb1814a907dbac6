/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What happens to best-effort work at begin and after the end: strategies and the resume hold-off. */
class StrategyTest {
    private static final long HOLDOFF_NS = 500_000;
    private final List<String> slices = new ArrayList<>();
    private final SegmentScheduler s = new SegmentScheduler(
        new SchedulerConfig(FixedPriority.INSTANCE, 1, 20, 20, true, true, Unmanaged.BEST_EFFORT), new Recorder() {
            @Override
            public void onTimeslice(final int gpu, final int contextId, final long timesliceNs) {
                slices.add(contextId + "=" + timesliceNs);
            }
        });
    private long nowNs = 1;

    StrategyTest() {
        s.addContext(9, 0, ContextKind.UNMANAGED);
    }

    private void task(final int t, final int priority, final Strategy strategy) {
        s.addContext(t, 0, ContextKind.MANAGED);
        s.addTask(new TaskParameters(t, t, priority, 0, 0, 0, true).withStrategy(strategy));
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
    void shouldLeaveOthersOnBesideASlicedSegment() {
        task(1, 50, Strategy.SLICE);
        begin(1);
        assertTrue(s.contextDesired(9));
        assertEquals(SegmentState.RUNNING, s.state(1));
    }

    @Test
    void shouldTakeOthersOffForTheOtherTwo() {
        for (final Strategy strategy : List.of(Strategy.INTERRUPT, Strategy.INTERRUPT_SLICE)) {
            task(1, 50, strategy);
            begin(1);
            assertFalse(s.contextDesired(9), strategy.label());
            end(1);
            assertTrue(s.contextDesired(9), strategy.label());
            s.removeContext(1, nowNs);
        }
    }

    @Test
    void shouldGoByRankAmongSegmentsWhateverTheStrategy() {
        task(1, 50, Strategy.SLICE);
        task(2, 60, Strategy.INTERRUPT);
        begin(1);
        begin(2);
        assertEquals(SegmentState.PREEMPTED, s.state(1));
        assertFalse(s.contextDesired(1));
        assertFalse(s.contextDesired(9));
        end(2);
        assertEquals(SegmentState.RUNNING, s.state(1));
        assertTrue(s.contextDesired(9));
        task(3, 40, Strategy.INTERRUPT);
        begin(3);
        assertEquals(SegmentState.WAITING, s.state(3));
        assertFalse(s.contextDesired(3));
    }

    @Test
    void shouldGiveTheLongSliceWhileATaskAsksForIt() {
        task(1, 50, Strategy.SLICE);
        s.addTask(new TaskParameters(2, 1, 40, 0, 0, 0, true).withStrategy(Strategy.INTERRUPT_SLICE));
        s.removeTask(1, nowNs);
        assertEquals(List.of("1=" + SegmentScheduler.LONG_SLICE_NS), slices);
        s.setStrategy(2, Strategy.INTERRUPT, nowNs);
        assertEquals(List.of("1=" + SegmentScheduler.LONG_SLICE_NS, "1=0"), slices);
        s.setStrategy(2, Strategy.SLICE, nowNs);
        s.removeContext(1, nowNs);
        task(1, 50, Strategy.INTERRUPT);
        assertEquals(3, slices.size(), slices.toString());   // a context of the same number is another one
    }

    @Test
    void shouldPutTheLongSliceAboveThatOfAWeight() {
        s.setSharing(Sharing.TIMESLICES, 2_000_000, nowNs);
        task(1, 50, Strategy.INTERRUPT_SLICE);
        s.setWeight(s.ownGroup(9), 50, nowNs);
        assertTrue(slices.contains("9=1000000"), slices.toString());
        assertEquals("1=" + SegmentScheduler.LONG_SLICE_NS,
            slices.stream().filter(x -> x.startsWith("1=")).reduce((a, b) -> b).orElseThrow());
    }

    @Test
    void shouldChangeTheStrategyOfABegunSegmentAtOnce() {
        task(1, 50, Strategy.INTERRUPT);
        begin(1);
        assertFalse(s.contextDesired(9));
        assertTrue(s.setStrategy(1, Strategy.SLICE, nowNs));
        assertTrue(s.contextDesired(9));
        assertFalse(s.setStrategy(7, Strategy.SLICE, nowNs));
    }

    @Test
    void shouldKeepBestEffortOffForTheHoldoff() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50, Strategy.INTERRUPT);
        task(2, 40, Strategy.INTERRUPT);
        task(3, 0, Strategy.INTERRUPT);
        begin(1);
        assertFalse(s.contextDesired(2));
        end(1);
        assertTrue(s.contextDesired(1) && s.contextDesired(2), "real-time contexts come back at once");
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
        task(1, 50, Strategy.INTERRUPT);
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
        task(1, 50, Strategy.INTERRUPT);
        task(3, 0, Strategy.INTERRUPT);
        begin(1);
        end(1);
        begin(3);
        assertTrue(s.contextDesired(3) && s.contextDesired(9));
        end(3);
        assertTrue(s.contextDesired(9), "nobody was taken off for it, so nobody rests after it");
    }

    @Test
    void shouldTreatWhoComesMeanwhileLikeTheOthers() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50, Strategy.INTERRUPT);
        begin(1);
        end(1);
        s.addContext(8, 0, ContextKind.UNMANAGED);
        assertFalse(s.contextDesired(8));
        task(2, 30, Strategy.INTERRUPT);
        assertTrue(s.contextDesired(2));
        s.onTimer(nowNs + HOLDOFF_NS);
        assertTrue(s.contextDesired(8));
    }

    @Test
    void shouldNotRestAfterASlicedSegmentAndRefuseALongHoldoff() {
        s.setResumeHoldoff(HOLDOFF_NS, nowNs);
        task(1, 50, Strategy.SLICE);
        begin(1);
        end(1);
        assertTrue(s.contextDesired(9));
        assertThrows(IllegalArgumentException.class,
            () -> s.setResumeHoldoff(SegmentScheduler.HOLDOFF_MAX_NS + 1, nowNs));
        assertThrows(IllegalArgumentException.class, () -> s.setResumeHoldoff(-1, nowNs));
        assertThrows(IllegalArgumentException.class, () -> Strategy.named("both"));
        assertEquals(Strategy.INTERRUPT_SLICE, Strategy.named("interrupt+slice"));
    }

    @Test
    void shouldKeepReadyWhoMayBeginOverTheRunningOne() {
        task(1, 30, Strategy.INTERRUPT);
        task(2, 70, Strategy.INTERRUPT);
        task(3, 20, Strategy.INTERRUPT);
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
