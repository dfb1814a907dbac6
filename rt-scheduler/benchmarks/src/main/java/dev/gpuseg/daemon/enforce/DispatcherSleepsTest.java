/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import java.nio.ByteBuffer;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Expect;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;

/**
 * A result of an enforcer against a dispatcher that goes to sleep, with the daemon's own flag and the ring that carries
 * results. The ring publishes with a release store.
 */
@JCStressTest
@Outcome(id = "1, 1", expect = Expect.ACCEPTABLE, desc = "both see each other: one wake-up too many, harmless")
@Outcome(id = {"0, 1", "1, 0"}, expect = Expect.ACCEPTABLE, desc = "one sees the other")
@Outcome(id = "0, 0", expect = Expect.FORBIDDEN,
    desc = "lost wake-up: the dispatcher sleeps although an enforcer has reported; it learns of it 14 ms late")
@State
public class DispatcherSleepsTest {
    private static final int CAPACITY = 128;

    private final OneToOneRingBuffer results = new OneToOneRingBuffer(new UnsafeBuffer(
        ByteBuffer.allocateDirect(CAPACITY + RingBufferDescriptor.TRAILER_LENGTH)));
    private final SleepFlag sleeping = new SleepFlag();

    /** The enforcer reports. */
    @Actor
    public void enforcer(final II_Result result) {
        results.commit(results.tryClaim(1, Long.BYTES));
        result.r1 = sleeping.mustWake() ? 1 : 0;
    }

    /** The dispatcher has nothing to do. */
    @Actor
    public void dispatcher(final II_Result result) {
        sleeping.announce();
        result.r2 = results.read((type, buffer, offset, length) -> { });
    }
}
