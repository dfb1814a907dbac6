/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** A hint keeps the GPU free for one context, through the desired state. */
class ReservationTest {
    private final DesiredState desired = new DesiredState(4);
    private final boolean[] off = new boolean[4];

    @Test
    void shouldTakeOffAllButTheAnnouncedContext() {
        final long before = desired.commit();
        desired.reserve(2);
        desired.commit();
        assertTrue(desired.isNewerThan(before));
        desired.snapshot(off);
        assertArrayEquals(new boolean[] {true, true, false, true}, off);
    }

    @Test
    void shouldBringAllBackWhenTheAnnouncedBeginDoesNotCome() {
        desired.reserve(2);
        final long reserved = desired.commit();
        desired.unreserve();
        desired.commit();
        assertTrue(desired.isNewerThan(reserved));
        desired.snapshot(off);
        assertArrayEquals(new boolean[4], off);
    }

    @Test
    void shouldNotMatterWhileASegmentHoldsTheGpu() {
        desired.set(2, false);
        desired.set(3, false);
        desired.reserve(2);
        desired.commit();
        desired.snapshot(off);
        assertArrayEquals(new boolean[] {false, false, true, true}, off);
    }

    @Test
    void shouldPublishNothingWhenNothingWasReserved() {
        final long version = desired.commit();
        desired.unreserve();
        desired.commit();
        assertFalse(desired.isNewerThan(version));
    }
}
