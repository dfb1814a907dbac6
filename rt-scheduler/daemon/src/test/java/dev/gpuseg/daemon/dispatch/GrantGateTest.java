/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static dev.gpuseg.daemon.dispatch.DispatchRig.told;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import dev.gpuseg.core.HighestClassFirst;
import dev.gpuseg.core.OverrunAction;
import dev.gpuseg.core.RoundRobin;
import dev.gpuseg.daemon.metrics.PromisedBounds;
import dev.gpuseg.ipc.journal.EventKind;
import java.util.List;
import org.junit.jupiter.api.Test;

class GrantGateTest {
    private static final long TICKET = 7;
    private static final long LATE_NS = 20_000_000;
    /** Longer than any grant is waited for before the budget counts. */
    private static final long LONG_NS = 200_000_000;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);

    @Test
    void shouldHoldARealTimeGrantWhileAnotherContextIsStillEnabled() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        assertEquals(List.of(1), rig.enforcer.off());
        assertFalse(told(high).contains("granted 7"), told(high).toString());
        assertTrue(high.grantPending);
        assertEquals(List.of(EventKind.DECIDED), rig.events.kinds());
        assertEquals(0, rig.grants.poll(0, rig.enforcer.enforcedVersion()), "not enforced yet");
        assertTrue(high.grantPending);
    }

    @Test
    void shouldWriteTheGrantWhenTheEnforcerConfirms() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        rig.enforcer.enforce(50);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertEquals(List.of("running", "granted 7"), told(high).subList(told(high).size() - 2, told(high).size()));
        assertEquals(List.of(EventKind.DECIDED, EventKind.GRANT, EventKind.ENFORCED), rig.events.kinds());
        assertEquals(50, rig.events.last().timeNs(), "when it was enforced, not when that was noticed");
        assertEquals(1, rig.count(Counter.GRANTS));
        assertEquals(1, rig.count(Counter.GRANTS_AFTER_DISABLE));
        assertEquals(0, rig.grants.poll(0, rig.enforcer.enforcedVersion()), "once");
    }

    @Test
    void shouldCompareTheWaitOfABeginWithTheConstantOfTheProof() {
        final PromisedBounds bounds = new PromisedBounds(4);
        rig.grants.compareWith(bounds);
        bounds.constants(new long[] {0}, new long[] {49});
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        rig.enforcer.enforce(50);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertEquals(0, rig.count(Counter.CONSTANTS_BROKEN), "decided at 1, so it waited 49");
        bounds.constants(new long[] {0}, new long[] {48});
        rig.end(high, TICKET);
        rig.enforcer.enforce(50);
        rig.clock.set(100);
        high.patienceNs = 0;
        rig.begin(high, TICKET + 1, true);
        rig.enforcer.enforce(149);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertEquals(1, rig.count(Counter.CONSTANTS_BROKEN));
        assertEquals(EventKind.BOUND, rig.events.last().kind());
        assertEquals(List.of(49L, 48L, 2L), List.of(rig.events.last().arg0(), rig.events.last().arg1(),
            rig.events.last().arg2()));
        rig.end(high, TICKET + 1);
        rig.enforcer.enforce(200);
        rig.clock.set(200);
        rig.begin(high, TICKET + 2, true);
        high.patienceNs = 1;
        rig.enforcer.enforce(400);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertEquals(1, rig.count(Counter.CONSTANTS_BROKEN), "it goes without the call, and does not wait for it");
    }

    @Test
    void shouldNotTakeAnOlderStateForTheAwaitedOne() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        final long before = rig.enforcer.enforcedVersion();
        rig.begin(high, TICKET, true);
        rig.enforcer.enforce(50);
        assertEquals(0, rig.grants.poll(0, before), "read before the results that led to it");
        assertTrue(high.grantPending);
    }

    @Test
    void shouldGrantAtOnceWhereNothingIsLeftToDisable() {
        final TaskEntry alone = rig.task(1, 10);
        rig.begin(alone, TICKET, true);
        assertTrue(told(alone).contains("granted 7"));
        assertEquals(List.of(EventKind.GRANT, EventKind.ENFORCED), rig.events.kinds());
        assertEquals(0, rig.count(Counter.GRANTS_AFTER_DISABLE));
    }

    @Test
    void shouldNotHoldBestEffortBack() {
        rig.task(1, 0);
        final TaskEntry other = rig.task(2, 0);
        rig.begin(other, TICKET, true);
        assertTrue(told(other).contains("granted 7"));
        assertEquals(List.of(EventKind.GRANT), rig.events.kinds(), "nothing is enforced for it");
    }

    @Test
    void shouldLeaveTheSlotOfABeginThatDidNotWaitAlone() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, false);
        assertFalse(told(high).toString().contains("granted"), told(high).toString());
        rig.enforcer.enforce(50);
        assertEquals(1, rig.grants.poll(0, rig.enforcer.enforcedVersion()), "but its enforcement is recorded");
        assertFalse(told(high).toString().contains("granted"));
        assertEquals(List.of(EventKind.GRANT, EventKind.ENFORCED), rig.events.kinds());
    }

    @Test
    void shouldGiveNoGrantToASegmentThatEndedBefore() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        rig.end(high, TICKET);
        rig.enforcer.enforce(50);
        assertEquals(0, rig.grants.poll(0, rig.enforcer.enforcedVersion()));
        assertFalse(told(high).toString().contains("granted"), told(high).toString());
    }

    @Test
    void shouldNotTakeTheNextBeginForOneThatStillWaits() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        rig.end(high, TICKET);
        rig.enforcer.enforce(50);
        rig.forget(high);
        rig.begin(high, TICKET + 1, false);
        assertEquals(EventKind.GRANT, rig.events.events.get(0).kind(), "it did not wait, so nothing is pending");
    }

    @Test
    void shouldGrantAPreemptedSegmentOnlyWhenItRunsAgain() {
        rig.task(1, 10);
        final TaskEntry middle = rig.task(2, 20);
        final TaskEntry high = rig.task(3, 30);
        rig.begin(middle, TICKET, true);
        rig.begin(high, TICKET, true);
        rig.enforcer.enforce(50);
        rig.grants.poll(0, rig.enforcer.enforcedVersion());
        assertTrue(told(high).contains("granted 7"));
        assertFalse(told(middle).contains("granted 7"), "preempted before it was enforced");
        rig.end(high, TICKET);
        rig.enforcer.enforce(60);
        rig.grants.poll(0, rig.enforcer.enforcedVersion());
        assertTrue(told(middle).contains("granted 7"));
    }

    @Test
    void shouldGrantButCountItWhereTheDeviceFailed() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20);
        rig.begin(high, TICKET, true);
        rig.enforcer.incomplete = true;
        rig.enforcer.enforce(50);
        rig.grants.poll(0, rig.enforcer.enforcedVersion());
        assertTrue(told(high).contains("granted 7"), "fail open");
        assertEquals(1, rig.count(Counter.GRANTS_UNENFORCED));
        assertFalse(rig.events.kinds().contains(EventKind.ENFORCED));
    }

    @Test
    void shouldGrantASegmentThatIsDemotedBeforeItIsEnforced() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20, 100, OverrunAction.DEMOTE);
        rig.begin(high, TICKET, true);
        assertTrue(high.grantPending);
        rig.at(LATE_NS);
        assertFalse(rig.events.kinds().contains(EventKind.OVERRUN), "the enforcer is late, not the segment");
        rig.at(LONG_NS);
        assertTrue(rig.events.kinds().contains(EventKind.OVERRUN), rig.events.kinds().toString());
        assertTrue(told(high).contains("granted 7"), "best effort waits for no enforcement");
        assertFalse(high.grantPending);
    }

    @Test
    void shouldCountTheBudgetFromTheGrantOn() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20, 100, OverrunAction.DEMOTE);
        rig.begin(high, TICKET, true);
        rig.enforcer.enforce(50);
        rig.at(LATE_NS);   // the dispatcher stood still, and looks at the clock before it looks at the enforcer
        rig.grants.poll(0, rig.enforcer.enforcedVersion());
        assertTrue(told(high).contains("granted 7"));
        rig.at(LATE_NS + 100);
        assertTrue(rig.scheduler.isRealTime(high.id));
        assertEquals(0, rig.count(Counter.OVERRUNS));
        rig.at(LATE_NS + 101);
        assertFalse(rig.scheduler.isRealTime(high.id));
        assertEquals(1, rig.count(Counter.OVERRUNS));
    }

    @Test
    void shouldCountTheBudgetOfABeginThatDidNotWaitFromTheDecisionOn() {
        rig.task(1, 10);
        final TaskEntry high = rig.task(2, 20, 100, OverrunAction.DEMOTE);
        rig.begin(high, TICKET, false);
        rig.at(102);
        assertEquals(1, rig.count(Counter.OVERRUNS), "it has the GPU, beside what is still enabled");
    }

    @Test
    void shouldGiveTheGrantsOfAWholeClass() {
        final DispatchRig classes = new DispatchRig(new HighestClassFirst(50));
        classes.task(1, 0);
        final TaskEntry one = classes.task(2, 20);
        final TaskEntry other = classes.task(3, 20);
        classes.begin(one, TICKET, true);
        classes.begin(other, TICKET, true);
        assertTrue(one.grantPending && other.grantPending);
        classes.enforcer.enforce(50);
        classes.grants.poll(0, classes.enforcer.enforcedVersion());
        assertTrue(told(other).contains("granted 7"));
        assertTrue(told(one).contains("granted 7"), "both wait for the same");
    }

    @Test
    void shouldRememberASegmentThatAGateEnded() {
        final DispatchRig gate = new DispatchRig(FixedPriority.INSTANCE, false, 1);
        final TaskEntry holder = gate.task(1, 10, 100, OverrunAction.DEMOTE);
        final TaskEntry other = gate.task(2, 20);
        gate.begin(holder, TICKET, true);
        gate.begin(other, TICKET, true);
        assertFalse(told(other).contains("granted 7"), "a gate does not preempt");
        gate.at(1_000);
        assertEquals(TICKET, holder.forcedTicket, "its END will be no offence");
        assertTrue(gate.events.kinds().contains(EventKind.FORCED_END));
        assertTrue(told(other).contains("granted 7"));
    }

    @Test
    void shouldRecordNoEnforcementWhereNothingIsEnforced() {
        final DispatchRig observer = new DispatchRig(RoundRobin.INSTANCE);
        final TaskEntry task = observer.task(1, 10);
        observer.begin(task, TICKET, true);
        assertEquals(List.of(EventKind.GRANT), observer.events.kinds());
        final DispatchRig gate = new DispatchRig(FixedPriority.INSTANCE, false, 1);
        final TaskEntry gated = gate.task(1, 10);
        gate.begin(gated, TICKET, true);
        assertEquals(List.of(EventKind.GRANT), gate.events.kinds());
    }
}
