/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.core.FixedPriority;
import org.junit.jupiter.api.Test;

/** How long work that is in flight keeps contexts on the GPU. */
class DrainsTest {
    private static final int FIRST = 1;
    private static final int SECOND = 2;

    private final DispatchRig rig = new DispatchRig(FixedPriority.INSTANCE);
    private final FakeSlot first = (FakeSlot) rig.task(FIRST, 0).slot;
    private final FakeSlot second = (FakeSlot) rig.task(SECOND, 0).slot;
    private final Drains drains = new Drains(rig.tasks, 1, DispatchRig.CONTEXTS);

    private void holdBoth() {
        first.inFlight = true;
        second.inFlight = true;
        drains.disabled(0, FIRST);
        drains.disabled(0, SECOND);
        drains.enforced(0, true, 100, 110);
    }

    private static void drained(final FakeSlot slot, final long atNs) {
        slot.inFlight = false;
        slot.drainedNs = atNs;
    }

    @Test
    void shouldSayNothingBeforeSomethingWasDisabled() {
        assertFalse(drains.poll(0, 100));
        assertFalse(drains.isOpen(0));
    }

    @Test
    void shouldBeOverAtOnceWhereNothingIsInFlight() {
        drains.disabled(0, FIRST);
        drains.enforced(0, true, 100, 110);
        assertTrue(drains.poll(0, 120));
        assertEquals(100, drains.sinceNs(0));
        assertEquals(110, drains.doneNs(0), "held by then, and drained before");
        assertEquals(1, drains.contexts(0));
        assertFalse(drains.poll(0, 130), "told once");
    }

    @Test
    void shouldLastUntilTheLastOneHasDrained() {
        holdBoth();
        assertFalse(drains.poll(0, 200));
        drained(second, 700);
        assertFalse(drains.poll(0, 800));
        assertTrue(drains.isOpen(0));
        drained(first, 600);
        assertTrue(drains.poll(0, 900));
        assertEquals(700, drains.doneNs(0));
        assertEquals(2, drains.contexts(0));
    }

    @Test
    void shouldBelieveNoTimeThatHasNotCome() {
        holdBoth();
        drained(first, Long.MAX_VALUE);
        drained(second, -5);
        assertTrue(drains.poll(0, 900));
        assertEquals(900, drains.doneNs(0));
    }

    @Test
    void shouldCountUntilItIsEnabledAgainWhatDidNotDrain() {
        holdBoth();
        drained(second, 700);
        drains.enabled(0, SECOND, 1000);
        drains.enabled(0, FIRST, 1500);
        assertTrue(drains.poll(0, 1600));
        assertEquals(1500, drains.doneNs(0));
        assertEquals(2, drains.contexts(0));
    }

    @Test
    void shouldSayNothingOfOneAloneIfMoreAreDisabledMeanwhile() {
        first.inFlight = true;
        second.inFlight = true;
        drains.disabled(0, FIRST);
        drains.enforced(0, true, 100, 110);
        drains.poll(0, 120);
        drains.disabled(0, SECOND);
        drains.enforced(0, true, 200, 210);
        drained(first, 300);
        assertFalse(drains.poll(0, 310));
        drained(second, 400);
        assertTrue(drains.poll(0, 410));
        assertEquals(0, drains.contexts(0));
        assertEquals(400, drains.doneNs(0));
    }

    @Test
    void shouldGoOnWhenTheBeginThatWasExpectedComes() {
        holdBoth();
        drains.enforced(0, false, 300, 310);   // disables nothing more
        drained(first, 900);
        drained(second, 950);
        assertTrue(drains.poll(0, 1000));
        assertEquals(100, drains.sinceNs(0));
        assertEquals(950, drains.doneNs(0));
        assertEquals(2, drains.contexts(0));
    }

    @Test
    void shouldCountThoseThatWereHeldBefore() {
        drains.disabled(0, SECOND);
        drains.enforced(0, true, 100, 110);
        assertTrue(drains.poll(0, 120));
        first.inFlight = true;
        drains.disabled(0, FIRST);
        drains.enforced(0, true, 1000, 1010);
        drained(first, 1700);
        assertTrue(drains.poll(0, 1800));
        assertEquals(2, drains.contexts(0), "an expected begin has to find both held");
        drains.forget(0, SECOND);
        drains.enabled(0, FIRST, 2000);
        drains.disabled(0, FIRST);
        drains.enforced(0, true, 3000, 3010);
        assertTrue(drains.poll(0, 3020));
        assertEquals(1, drains.contexts(0));
    }

    @Test
    void shouldNotWaitForAProcessThatIsGone() {
        holdBoth();
        drained(second, 700);
        drains.forget(0, FIRST);
        assertTrue(drains.poll(0, 800));
        assertEquals(700, drains.doneNs(0));
    }
}
