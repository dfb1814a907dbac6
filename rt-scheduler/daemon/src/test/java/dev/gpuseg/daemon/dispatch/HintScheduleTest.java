/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.core.ContextKind;
import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.RoundRobin;
import dev.gpuseg.daemon.conductor.TaskOpen;
import dev.gpuseg.mechanisms.Capabilities;
import java.util.List;
import org.junit.jupiter.api.Test;

class HintScheduleTest {
    private static final long AT_NS = 100_000_000;
    private static final long DISABLE_NS = 500_000;
    private static final long PER_CONTEXT_NS = 10_000;
    /** Two other processes to disable. */
    private static final long LEAD_NS = DISABLE_NS + 2 * PER_CONTEXT_NS + HintSchedule.MARGIN_NS;
    private static final long NEVER = Long.MAX_VALUE;

    private final DispatchRig rig = rig(new DispatchRig(FixedPriority.INSTANCE));
    private final TaskEntry low = rig.task(1, 10);
    private final TaskEntry middle = rig.task(2, 20);
    private final TaskEntry high = rig.task(3, 30);

    private static DispatchRig rig(final DispatchRig rig) {
        rig.enforcer.mechanism.capabilities =
            new Capabilities(Capabilities.INTERRUPT, DISABLE_NS, PER_CONTEXT_NS, 0, 0, 64, true, "process");
        rig.processCount = 3;
        return rig;
    }

    /** Of the contexts that there are. */
    private List<Integer> off() {
        return rig.enforcer.off().stream().filter(c -> c <= high.contextId).toList();
    }

    private void poll(final long nowNs) {
        rig.clock.set(nowNs);
        if (rig.hints.poll(nowNs) > 0) {
            rig.decisions.settle();
        }
    }

    @Test
    void shouldIgnoreAnnouncementsThatNothingCanBeDoneFor() {
        final TaskEntry bestEffort = rig.task(4, 0);
        rig.hints.announce(bestEffort, AT_NS);
        assertEquals(NEVER, rig.hints.nextNs(), "best effort preempts nothing");
        final DispatchRig gate = rig(new DispatchRig(FixedPriority.INSTANCE, false, 1));
        gate.hints.announce(gate.task(1, 10), AT_NS);
        assertEquals(NEVER, gate.hints.nextNs(), "a gate disables nothing");
        final DispatchRig observer = rig(new DispatchRig(RoundRobin.INSTANCE));
        observer.hints.announce(observer.task(1, 10), AT_NS);
        assertEquals(NEVER, observer.hints.nextNs(), "the policy disables nothing");
    }

    @Test
    void shouldNotDropTheAnnouncementOfAHigherTaskForALowerOne() {
        rig.hints.announce(high, AT_NS);
        rig.hints.announce(low, AT_NS - 10_000_000);
        assertEquals(AT_NS - LEAD_NS, rig.hints.nextNs());
    }

    @Test
    void shouldDisableLowerWorkAsLongBeforeTheBeginAsThatTakes() {
        rig.hints.announce(middle, AT_NS);
        assertEquals(AT_NS - LEAD_NS, rig.hints.nextNs());
        poll(AT_NS - LEAD_NS - 1);
        assertEquals(List.of(), rig.enforcer.off());
        poll(AT_NS - LEAD_NS);
        assertEquals(List.of(1), off(), "the higher task's context stays enabled");
        assertEquals(1, rig.count(Counter.HINTS_ACTED));
    }

    @Test
    void shouldEnableItAgainWhenTheBeginDoesNotCome() {
        rig.hints.announce(middle, AT_NS);
        poll(AT_NS);
        assertEquals(AT_NS + HintSchedule.LATE_MIN_NS, rig.hints.nextNs(), "it may be late by 1 ms at least");
        poll(AT_NS + HintSchedule.LATE_MIN_NS);
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(1, rig.count(Counter.HINTS_WASTED));
        assertEquals(NEVER, rig.hints.nextNs());
    }

    @Test
    void shouldActNoMoreOnceTheBeginCame() {
        rig.hints.announce(middle, AT_NS);
        poll(AT_NS);
        rig.begin(middle, 1, true);
        assertEquals(List.of(1), off(), "for the segment now");
        assertEquals(NEVER, rig.hints.nextNs());
        rig.end(middle, 1);
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(0, rig.count(Counter.HINTS_WASTED));
    }

    @Test
    void shouldPreemptNoRunningSegmentForOneThatHasNotBegun() {
        rig.begin(low, 1, true);
        rig.hints.announce(high, AT_NS);
        poll(AT_NS);
        assertEquals(List.of(), rig.enforcer.off());
        assertEquals(NEVER, rig.hints.nextNs(), "priorities decide at the begin");
        assertEquals(0, rig.count(Counter.HINTS_ACTED));
    }

    @Test
    void shouldFollowTheLaterOfTwoAnnouncementsOfOneTask() {
        rig.hints.announce(middle, AT_NS);
        poll(AT_NS);
        rig.hints.announce(middle, 2 * AT_NS);
        rig.decisions.settle();
        assertEquals(List.of(), rig.enforcer.off(), "until its time");
        assertEquals(2 * AT_NS - LEAD_NS, rig.hints.nextNs());
    }

    @Test
    void shouldForgetTheAnnouncementOfATaskThatIsClosed() {
        rig.hints.announce(middle, AT_NS);
        rig.hints.forget(low);
        assertEquals(AT_NS - LEAD_NS, rig.hints.nextNs(), "another's");
        rig.hints.forget(middle);
        assertEquals(NEVER, rig.hints.nextNs());
    }

    @Test
    void shouldSayTheNextTimeOfAllGpus() {
        final DispatchRig two = rig(new DispatchRig(FixedPriority.INSTANCE, true, 2));
        final TaskEntry onFirst = two.task(1, 10);
        two.hints.announce(onFirst, AT_NS);
        two.scheduler.addContext(7, 1, ContextKind.MANAGED);
        final TaskEntry onSecond = new TaskEntry(2, onFirst.client, new FakeSlot(), 7,
            new TaskOpen(1, 1, "second", 10, 10, 1, true, 0, 0, 0));
        two.hints.announce(onSecond, AT_NS / 2);
        assertEquals(AT_NS / 2 - two.enforcers[1].mechanism.capabilities.disableNs() - HintSchedule.MARGIN_NS,
            two.hints.nextNs());
    }
}
