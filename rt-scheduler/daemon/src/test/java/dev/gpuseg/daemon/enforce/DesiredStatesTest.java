/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import org.junit.jupiter.api.Test;

class DesiredStatesTest {
    private final FakeEnforcement first = new FakeEnforcement(4);
    private final FakeEnforcement second = new FakeEnforcement(4);
    private final DesiredStates desired = new DesiredStates(new Enforcement[] {first, second});

    @Test
    void shouldPublishNothingWhereNothingChanged() {
        final long before = first.desired.commit();
        desired.publish(0, false, false);
        assertFalse(first.desired.isNewerThan(before));
        assertEquals(List.of(), first.calls);
    }

    @Test
    void shouldWakeOnlyTheEnforcerWhoseStateChanged() {
        desired.set(1, 2, false);
        desired.publish(0, false, false);
        desired.publish(1, false, false);
        assertEquals(List.of(), first.calls);
        assertEquals(List.of("kick"), second.calls);
        assertEquals(List.of(2), second.off());
        desired.publish(1, false, false);
        assertEquals(List.of("kick"), second.calls, "once");
    }

    @Test
    void shouldNotBeSettledUntilADisableIsEnforced() {
        assertTrue(desired.isSettled(0));
        desired.set(0, 2, false);
        desired.publish(0, false, false);
        assertFalse(desired.isSettled(0));
        assertTrue(desired.isSettled(1), "another GPU");
        first.enforce(1);
        assertTrue(desired.isSettled(0));
    }

    @Test
    void shouldStaySettledWhereContextsAreOnlyEnabled() {
        desired.set(0, 2, false);
        desired.publish(0, false, false);
        first.enforce(1);
        final long before = desired.disableVersion(0);
        desired.set(0, 2, true);
        desired.publish(0, false, false);
        assertTrue(desired.isSettled(0), "no grant has to wait for an enable");
        assertEquals(before, desired.disableVersion(0));
    }

    @Test
    void shouldNotBeSettledUntilAReservationIsEnforced() {
        first.desired.reserve(3);
        desired.publish(0, true, false);
        assertFalse(desired.isSettled(0));
        assertEquals(1, first.kicks());
    }

    @Test
    void shouldLetNobodyWaitForOneThatRests() {
        final long before = desired.disableVersion(0);
        desired.rest(0, 2, true);
        desired.publish(0, false, false);
        assertEquals(List.of(2), first.off());
        assertEquals(before, desired.disableVersion(0));
        assertTrue(desired.isSettled(0));
        first.desired.reserve(3);
        desired.publish(0, true, false);
        assertEquals(List.of(1, 2, 4), first.off(), "a reservation counts although one rests");
        first.desired.unreserve();
        desired.rest(0, 2, false);
        desired.publish(0, true, false);
        assertEquals(List.of(), first.off());
    }

    @Test
    void shouldDisableLaterWhatHasAShortSliceAndNotAtAllWhatIsWantedOnBefore() {
        desired.turnSlice(0, 2, 500_000, true);
        desired.turnSlice(0, 1, 1_000_000_000, false);
        first.calls.clear();
        desired.set(0, 1, false);
        desired.set(0, 2, false);
        desired.publish(0, false, true);
        assertEquals(List.of(1), first.off());
        first.enforce(1);
        assertFalse(desired.isSettled(0), "a begin that waits waits for it, too");
        assertTrue(desired.hasDisabled(0));
        desired.publish(0, false, false);
        assertEquals(List.of(1, 2), first.off());
        desired.set(0, 1, true);
        desired.set(0, 2, true);
        desired.publish(0, false, false);
        desired.set(0, 2, false);
        desired.publish(0, false, true);
        first.calls.clear();
        desired.set(0, 2, true);
        desired.publish(0, false, false);
        assertEquals(List.of(), first.calls, "no call was made, so none is to be undone");
        assertFalse(desired.hasDisabled(0));
    }

    @Test
    void shouldAskForTheSliceOfTheShareBeforeThatOfTurns() {
        desired.turnSlice(0, 2, 500_000, true);
        desired.timeslice(0, 2, 4_000_000);
        desired.turnSlice(0, 2, 0, false);
        desired.timeslice(0, 2, 0);
        assertEquals(List.of("timeslice 2 500000", "timeslice 2 4000000", "timeslice 2 0"), first.calls);
    }

    @Test
    void shouldEnableTheContextOfAProcessThatIsGoneForWhoGetsItsId() {
        desired.set(0, 2, false);
        desired.publish(0, false, false);
        desired.forget(0, 2);
        assertEquals(List.of(), first.off());
        assertEquals(List.of("kick", "detach 2"), first.calls);
    }
}
