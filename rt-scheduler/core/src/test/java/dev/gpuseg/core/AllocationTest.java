/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.core;

import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.lang.management.ManagementFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Invariant 8: nothing is allocated per event after warm-up. */
class AllocationTest {
    private static final int WARM_UP = 200_000;
    private static final int EVENTS = 1_000_000;

    @ParameterizedTest
    @CsvSource({"true, true", "true, false", "false, false"})
    void shouldAllocateNothingPerEvent(final boolean preemptive, final boolean keepReady) {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final DigestSink sink = new DigestSink();
        final SegmentScheduler scheduler = new SegmentScheduler(
            new SchedulerConfig(FixedPriority.INSTANCE, 2, 256, 64, preemptive, true, Unmanaged.BEST_EFFORT), sink);
        scheduler.setKeepReady(keepReady, 0);
        final Storm storm = new Storm(scheduler, 2, 32, 200, 42);
        for (int i = 0; i < WARM_UP; i++) {
            storm.event();
        }
        final long callsBefore = sink.calls;
        final long self = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(self);
        for (int i = 0; i < EVENTS; i++) {
            storm.event();
        }
        final double bytesPerEvent = (threads.getThreadAllocatedBytes(self) - before) / (double) EVENTS;
        assertTrue(sink.calls - callsBefore > EVENTS / 10, "the events had effects: " + (sink.calls - callsBefore));
        assertTrue(bytesPerEvent < 0.1, "bytes per event: " + bytesPerEvent);
    }

    @Test
    void shouldAllocateNothingPerExpectedBegin() {
        assumeTrue(ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean,
            "this JVM cannot count allocated bytes: no com.sun.management.ThreadMXBean");
        final var threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        final AnticipatorTest machine = new AnticipatorTest();
        machine.machine();
        machine.openTwo();
        machine.playTwo(WARM_UP / 10);
        final long self = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(self);
        final int begins = EVENTS / 20;
        machine.playTwo(begins);
        final double bytes = (threads.getThreadAllocatedBytes(self) - before) / (double) begins;
        assertTrue(machine.anticipated() > begins / 2, "begins anticipated: " + machine.anticipated());
        assertTrue(bytes < 1, "bytes per begin: " + bytes);
    }
}
