/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.launch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.Abi;
import dev.gpuseg.ipc.LaunchHold;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.ContextRef;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LaunchMechanismTest {
    private static final int GPU = 3;

    private final LaunchMechanism mechanism = new LaunchMechanism(false);
    private final HeldSession first = new HeldSession();
    private final HeldSession second = new HeldSession();
    private final ContextRef a = new ContextRef(7, GPU, 101, 1, "a");
    private final ContextRef b = new ContextRef(2, GPU, 102, 1, "b");

    @BeforeEach
    void attach() {
        mechanism.attach(a);
        mechanism.attach(b);
    }

    @AfterEach
    void close() {
        mechanism.close();
        first.close();
        second.close();
    }

    private void disable(final ContextRef context) {
        assertEquals(0, mechanism.apply(new ContextRef[] {context}, 1, new ContextRef[0], 0));
    }

    private void enable(final ContextRef context) {
        assertEquals(0, mechanism.apply(new ContextRef[0], 0, new ContextRef[] {context}, 1));
    }

    @Test
    void shouldRefuseAGpuThatNoSessionHasAWordFor() {
        assertThrows(IllegalArgumentException.class, () -> first.word(Abi.GPUS_MAX));
        assertThrows(IllegalArgumentException.class, () -> first.word(-1));
    }

    @Test
    void shouldHaveNothingToHoldOfAProcessWithoutASession() {
        disable(a);
        assertEquals(ContextRef.SwitchResult.ABSENT, a.result());
    }

    @Test
    void shouldPreemptAtLevelOne() {
        assertEquals(Capabilities.GATE, mechanism.capabilities().level());
        assertTrue(mechanism.capabilities().preemptive());
        assertTrue(mechanism.capabilities().holdsLaunches());
    }

    @Test
    void shouldHoldEverySessionOfTheProcessOnThisGpuAndNoOther() {
        try (HeldSession other = new HeldSession()) {
            mechanism.joined(a, first.session, first.word(GPU));
            mechanism.joined(a, second.session, second.word(GPU));
            mechanism.joined(b, other.session, other.word(GPU));
            disable(a);
            assertEquals(ContextRef.SwitchResult.DONE, a.result());
            assertTrue(a.doneNs() >= a.beganNs());
            assertTrue(first.isHeld(GPU) && second.isHeld(GPU));
            assertFalse(other.isHeld(GPU));
            for (int gpu = 0; gpu < Abi.GPUS_MAX; gpu++) {
                assertEquals(gpu == GPU, first.isHeld(gpu), "GPU " + gpu);
            }
            enable(a);
            assertEquals(ContextRef.SwitchResult.DONE, a.result());
            assertFalse(first.isHeld(GPU) || second.isHeld(GPU));
        }
    }

    @Test
    void shouldDisableBeforeItEnables() {
        mechanism.joined(a, first.session, first.word(GPU));
        mechanism.joined(b, second.session, second.word(GPU));
        disable(b);
        mechanism.apply(new ContextRef[] {a}, 1, new ContextRef[] {b}, 1);
        assertTrue(first.isHeld(GPU));
        assertFalse(second.isHeld(GPU));
        assertTrue(a.doneNs() <= b.beganNs());
    }

    @Test
    void shouldHoldASessionThatJoinsAHeldProcess() {
        disable(a);
        mechanism.joined(a, first.session, first.word(GPU));
        assertTrue(first.isHeld(GPU));
        mechanism.joined(b, second.session, second.word(GPU));
        assertFalse(second.isHeld(GPU));
    }

    @Test
    void shouldLetASessionGoThatLeavesAndNotTouchItAgain() {
        mechanism.joined(a, first.session, first.word(GPU));
        mechanism.joined(a, second.session, second.word(GPU));
        disable(a);
        mechanism.left(a, first.session);
        assertFalse(first.isHeld(GPU));
        assertTrue(second.isHeld(GPU));
        disable(a);
        assertFalse(first.isHeld(GPU));
        mechanism.left(a, first.session);   // harmless
        assertTrue(second.isHeld(GPU));
    }

    @Test
    void shouldLetAllGoWhenTheProcessIsForgottenOrTheMechanismCloses() {
        mechanism.joined(a, first.session, first.word(GPU));
        mechanism.joined(b, second.session, second.word(GPU));
        disable(a);
        disable(b);
        mechanism.detach(a);
        assertFalse(first.isHeld(GPU));
        assertTrue(second.isHeld(GPU));
        mechanism.close();
        assertFalse(second.isHeld(GPU));
    }

    @Test
    void shouldStartANewProcessWithTheSameNumberFree() {
        disable(a);
        mechanism.detach(a);
        final ContextRef next = new ContextRef(a.contextId(), GPU, 103, 1, "next");
        mechanism.attach(next);
        mechanism.joined(next, first.session, first.word(GPU));
        assertFalse(first.isHeld(GPU));
    }

    @Test
    void shouldWorkOnAWordWhoseSessionIsClosed() {
        final HeldSession gone = new HeldSession();
        final LaunchHold word = gone.word(GPU);
        mechanism.joined(a, gone.session, word);
        gone.close();
        disable(a);
        enable(a);
        mechanism.left(a, gone.session);
        assertEquals(ContextRef.SwitchResult.DONE, a.result());
    }
}
