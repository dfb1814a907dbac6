/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.enforce;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.HeldFile;
import dev.gpuseg.mechanisms.gate.GateMechanism;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.function.BooleanSupplier;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.ringbuffer.OneToOneRingBuffer;
import org.agrona.concurrent.ringbuffer.RingBufferDescriptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Publishing work against going to sleep, on the real classes: never may the sleeper find nothing while the publisher
 * finds no sleeper. Two threads meet at each of many objects, so that their stores miss the cache. Without the
 * fence in {@link SleepFlag#mustWake} one race in twenty is lost on x86 (measured on two shared cores).
 */
@Timeout(60)
class LostWakeUpTest {
    private static final long RUN_NS = 2_000_000_000L;
    private static final int OBJECTS = 256;
    private static final int SPINS = 1_000;

    /** Both sides of a race over one object, and how it is made as before. */
    private interface Race {
        /** Publishes; whether the sleeper was found asleep. */
        boolean publish(int i);

        /** Announces sleep; whether nothing was found to do. */
        boolean sleeps(int i);

        /** The sleeper takes what was published. */
        void settle(int i);
    }

    @Test
    void shouldNotParkTheEnforcerBesideANewerDesiredState(@TempDir final Path directory) throws InterruptedException {
        try (HeldFile held = HeldFile.openOrCreate(directory.resolve("held"))) {
            final Enforcer[] enforcers = new Enforcer[OBJECTS];
            for (int i = 0; i < OBJECTS; i++) {
                enforcers[i] = new Enforcer(0, new GateMechanism(), held, null, 3, 0, IdleMode.SLEEP, () -> { });
            }
            final boolean[] on = new boolean[OBJECTS];
            race("the enforcer sleeps although a newer state is published", new Race() {
                @Override
                public boolean publish(final int i) {
                    on[i] = !on[i];
                    enforcers[i].desired().set(1, on[i]);
                    enforcers[i].desired().set(2, !on[i]);
                    enforcers[i].desired().commit();
                    return enforcers[i].kick();
                }

                @Override
                public boolean sleeps(final int i) {
                    return enforcers[i].announcePark();
                }

                @Override
                public void settle(final int i) {
                    enforcers[i].unannouncePark();
                    enforcers[i].cycle(1);
                }
            });
        }
    }

    @Test
    void shouldNotLetTheDispatcherSleepBesideAnUnreadResult() throws InterruptedException {
        final SleepFlag[] flags = new SleepFlag[OBJECTS];
        final OneToOneRingBuffer[] results = new OneToOneRingBuffer[OBJECTS];
        for (int i = 0; i < OBJECTS; i++) {
            flags[i] = new SleepFlag();
            results[i] = new OneToOneRingBuffer(new UnsafeBuffer(ByteBuffer.allocateDirect(
                256 + RingBufferDescriptor.TRAILER_LENGTH)));
        }
        race("the dispatcher sleeps although an enforcer has reported", new Race() {
            @Override
            public boolean publish(final int i) {
                final int at = results[i].tryClaim(EnforcerResults.CONTEXT, Long.BYTES);
                results[i].commit(at);
                return flags[i].mustWake();
            }

            @Override
            public boolean sleeps(final int i) {
                flags[i].announce();
                return results[i].read((type, buffer, offset, length) -> { }) == 0;
            }

            @Override
            public void settle(final int i) {
                flags[i].clear();
                while (results[i].size() > 0) {
                    results[i].read((type, buffer, offset, length) -> { });
                }
            }
        });
    }

    /** Both threads go through all objects at the same time, again and again; the sleeper then looks and cleans up. */
    private static void race(final String consequence, final Race race) throws InterruptedException {
        final boolean[] foundAsleep = new boolean[OBJECTS];
        final Meeting meeting = new Meeting();
        final Thread publisher = new Thread(() -> {
            while (meeting.first()) {
                for (int i = 0; i < OBJECTS; i++) {
                    meeting.first();
                    foundAsleep[i] = race.publish(i);
                }
                meeting.first();
            }
        }, "publisher");
        publisher.start();
        final boolean[] slept = new boolean[OBJECTS];
        final long beganNs = System.nanoTime();
        long races = 0;
        int lost = 0;
        while (System.nanoTime() - beganNs < RUN_NS) {
            meeting.second();
            for (int i = 0; i < OBJECTS; i++) {
                meeting.second();
                slept[i] = race.sleeps(i);
            }
            meeting.second();
            for (int i = 0; i < OBJECTS; i++) {
                lost += slept[i] && !foundAsleep[i] ? 1 : 0;
                race.settle(i);
            }
            races += OBJECTS;
        }
        meeting.end();
        publisher.join();
        assertEquals(0, lost, consequence + ", in " + races + " races");
        assertTrue(races > OBJECTS, "the two threads never met");
    }

    /** Two threads wait for each other without sleeping. */
    private static final class Meeting {
        private volatile int first;
        private volatile int second;
        private volatile boolean ended;

        boolean first() {
            first++;   // single writer
            await(() -> second - first >= 0);
            return !ended;
        }

        void second() {
            second++;   // single writer
            await(() -> first - second >= 0);
        }

        void end() {
            ended = true;
        }

        private void await(final BooleanSupplier met) {
            for (int i = 0; !met.getAsBoolean() && !ended; i++) {
                if (i > SPINS) {
                    Thread.yield();
                } else {
                    Thread.onSpinWait();
                }
            }
        }
    }
}
