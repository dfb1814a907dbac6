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
        desired.publish(0, false);
        assertFalse(first.desired.isNewerThan(before));
        assertEquals(List.of(), first.calls);
    }

    @Test
    void shouldWakeOnlyTheEnforcerWhoseStateChanged() {
        desired.set(1, 2, false);
        desired.publish(0, false);
        desired.publish(1, false);
        assertEquals(List.of(), first.calls);
        assertEquals(List.of("kick"), second.calls);
        assertEquals(List.of(2), second.off());
        desired.publish(1, false);
        assertEquals(List.of("kick"), second.calls, "once");
    }

    @Test
    void shouldNotBeSettledUntilADisableIsEnforced() {
        assertTrue(desired.isSettled(0));
        desired.set(0, 2, false);
        desired.publish(0, false);
        assertFalse(desired.isSettled(0));
        assertTrue(desired.isSettled(1), "another GPU");
        first.enforce(1);
        assertTrue(desired.isSettled(0));
    }

    @Test
    void shouldStaySettledWhereContextsAreOnlyEnabled() {
        desired.set(0, 2, false);
        desired.publish(0, false);
        first.enforce(1);
        final long before = desired.disableVersion(0);
        desired.set(0, 2, true);
        desired.publish(0, false);
        assertTrue(desired.isSettled(0), "no grant has to wait for an enable");
        assertEquals(before, desired.disableVersion(0));
    }

    @Test
    void shouldNotBeSettledUntilAReservationIsEnforced() {
        first.desired.reserve(3);
        desired.publish(0, true);
        assertFalse(desired.isSettled(0));
        assertEquals(1, first.kicks());
    }

    @Test
    void shouldEnableTheContextOfAProcessThatIsGoneForWhoGetsItsId() {
        desired.set(0, 2, false);
        desired.publish(0, false);
        desired.forget(0, 2);
        assertEquals(List.of(), first.off());
        assertEquals(List.of("kick", "detach 2"), first.calls);
    }
}
