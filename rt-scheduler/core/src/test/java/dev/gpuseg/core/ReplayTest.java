/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import org.junit.jupiter.api.Test;

/** Invariant 7 over a long run: the same events give the same decisions, to the last call. */
class ReplayTest {
    private static final int EVENTS = 200_000;

    @Test
    void shouldReproduceALongRunExactly() {
        final DigestSink first = run(7);
        final DigestSink second = run(7);
        assertEquals(first.calls, second.calls);
        assertEquals(first.digest, second.digest);
        assertNotEquals(first.digest, run(8).digest, "other events give other decisions");
    }

    private static DigestSink run(final long seed) {
        final DigestSink sink = new DigestSink();
        final SegmentScheduler scheduler = new SegmentScheduler(
            new SchedulerConfig(FixedPriority.INSTANCE, 4, 256, 64, true, true, Unmanaged.BEST_EFFORT), sink);
        final Storm storm = new Storm(scheduler, 4, 48, 200, seed);
        for (int i = 0; i < EVENTS; i++) {
            storm.event();
        }
        return sink;
    }
}
