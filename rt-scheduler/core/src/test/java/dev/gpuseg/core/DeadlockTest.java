/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Sequences of events at which schedulers that edit a running set and a pending set by hand get stuck. */
class DeadlockTest {
    @ParameterizedTest
    @ValueSource(strings = {"fp", "edf"})
    void shouldKeepABestEffortSegmentRunningWhileAnotherOneEnds(final String policy) {
        final Machine m = new Machine(PolicyCatalog.builtIn().create(policy), true).task(1, 0).task(2, 0).task(3, 0);
        m.begin(1, 2, 3);
        m.end(2);
        assertEquals("running idle running", m.states(1, 2, 3));
        assertTrue(m.scheduler.contextDesired(1));
        assertTrue(m.scheduler.contextDesired(3));
    }

    @ParameterizedTest
    @ValueSource(strings = {"fp", "edf"})
    void shouldResumeEveryBestEffortSegmentAfterTheLastRealTimeOne(final String policy) {
        final Machine m = new Machine(PolicyCatalog.builtIn().create(policy), true).task(1, 0).task(2, 0).task(3, 0)
            .task(9, 50);
        m.begin(1, 2, 9, 3);
        assertEquals("preempted preempted waiting running", m.states(1, 2, 3, 9));
        m.end(9);
        assertEquals("running running running", m.states(1, 2, 3));
        m.end(1);
        assertEquals("idle running running", m.states(1, 2, 3));
    }

    @Test
    void shouldKeepThePreemptorRunningWhenAPreemptedSegmentEndsWhileAThirdWaits() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true).task(1, 10).task(2, 20).task(3, 30);
        m.begin(1, 3, 2);
        assertEquals("preempted waiting running", m.states(1, 2, 3));
        m.recorder.take();
        // The work of task 1 was already done when task 3 came; only its end arrives late.
        m.end(1);
        assertEquals("idle waiting running", m.states(1, 2, 3));
        assertEquals(0, m.recorder.take().size());
        m.end(3);
        assertEquals("running", m.state(2));
        m.end(2);
        assertEquals(SegmentScheduler.NONE, m.scheduler.runningTask(0));
    }

    @Test
    void shouldKeepThePreemptorRunningWhenAPreemptedSegmentEndsUnderEdf() {
        final Machine m = new Machine(EarliestDeadlineFirst.INSTANCE, true).task(1, 10).task(2, 10).task(3, 10);
        m.begin(1, 3000, false).begin(3, 1000, false).begin(2, 2000, false);
        m.end(1);
        assertEquals("idle waiting running", m.states(1, 2, 3));
        m.end(3);
        assertEquals("running", m.state(2));
    }

    @Test
    void shouldPutContextsThatNeverRegisteredBackOnTheHardware() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true).context(15, ContextKind.UNMANAGED)
            .task(1, 10).task(2, 20);
        m.begin(1);
        assertFalse(m.scheduler.contextDesired(15));
        m.begin(2).end(1);
        assertFalse(m.scheduler.contextDesired(15));
        m.end(2);
        assertTrue(m.scheduler.contextDesired(15));
    }

    @Test
    void shouldPutAContextThatAppearedWhileTheGpuWasHeldOnTheHardwareAfterwards() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true).task(1, 10);
        m.begin(1);
        m.context(15, ContextKind.UNMANAGED);
        assertFalse(m.scheduler.contextDesired(15));
        m.end(1);
        assertTrue(m.scheduler.contextDesired(15));
    }

    @Test
    void shouldPassTheGpuOnWhenTheProcessThatHoldsItDies() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true).task(1, 10).task(2, 20).task(3, 0);
        m.begin(3, 2, 1);
        assertTrue(m.scheduler.removeContext(2, m.now()));
        assertEquals("running preempted", m.states(1, 3));
        assertTrue(m.scheduler.removeContext(1, m.now()));
        assertEquals("running", m.state(3));
        assertTrue(m.scheduler.contextDesired(3));
    }

    @Test
    void shouldOpenTheGateWhenTheRealTimeSegmentThatHeldItShutGivesUp() {
        final Machine m = new Machine(FixedPriority.INSTANCE, false).task(1, 0).task(2, 0).task(9, 50);
        m.begin(1, 9, 2);
        assertEquals("running waiting waiting", m.states(1, 2, 9));
        assertEquals(Outcome.ACCEPTED, m.scheduler.cancel(9, m.scheduler.ticket(9), m.now()));
        assertEquals("running running idle", m.states(1, 2, 9));
    }

    @Test
    void shouldLetTheHolderFinishForABetterSegmentOfItsOwnContext() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true)
            .context(1, ContextKind.MANAGED).task(1, 1, 10).task(2, 1, 90).task(5, 50);
        m.begin(1, 5);
        assertEquals("preempted running", m.states(1, 5));
        // Task 2 cannot be granted before task 1 ends, and task 1 would never end behind task 5.
        m.begin(2);
        assertEquals("running waiting preempted", m.states(1, 2, 5));
        assertTrue(m.scheduler.contextDesired(1));
        assertFalse(m.scheduler.contextDesired(5));
        m.end(1);
        assertEquals("running preempted", m.states(2, 5));
        m.end(2);
        assertEquals("running", m.state(5));
    }

    @Test
    void shouldTakeTheInheritedRankBackWhenTheBetterSegmentGivesUp() {
        final Machine m = new Machine(FixedPriority.INSTANCE, true)
            .context(1, ContextKind.MANAGED).task(1, 1, 0).task(2, 1, 90).task(5, 50);
        m.begin(1, 5, 2);
        assertEquals("running waiting preempted", m.states(1, 2, 5));
        m.end(2);
        assertEquals("preempted idle running", m.states(1, 2, 5));
    }
}
