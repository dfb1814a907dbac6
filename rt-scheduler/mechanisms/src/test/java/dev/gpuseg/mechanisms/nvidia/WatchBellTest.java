/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.ipc.platform.Epoll;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WatchBellTest {
    private static final long RUN_NS = 1_000_000_000L;
    private static final long HANG_NS = 15_000_000_000L;
    private static final int BURST = 4096;

    @Test
    void shouldSayWhetherSomebodyRang() {
        try (WatchBell bell = new WatchBell()) {
            assertFalse(bell.answer());
            bell.ring();
            bell.ring();
            assertTrue(bell.answer());
            assertFalse(bell.answer());
        }
    }

    /** Rings that arrive while the thread answers others: none may leave it asleep beside what was published. */
    @Test
    void shouldNotSleepBesideSomethingThatWasPublished() throws InterruptedException {
        try (WatchBell bell = new WatchBell(); Epoll epoll = new Epoll(1)) {
            epoll.add(bell.fd(), Epoll.IN, 0);
            final AtomicInteger published = new AtomicInteger();
            final AtomicInteger seen = new AtomicInteger();
            final Thread watch = new Thread(() -> {
                while (seen.get() >= 0) {
                    epoll.await((int) (2 * HANG_NS / 1_000_000));
                    bell.answer();
                    final int now = published.get();
                    seen.accumulateAndGet(now, (before, next) -> before < 0 ? before : next);
                }
            }, "watch");
            watch.start();
            final long beganNs = System.nanoTime();
            boolean slept = false;
            while (!slept && System.nanoTime() - beganNs < RUN_NS) {
                for (int i = 0; i < BURST; i++) {
                    published.incrementAndGet();
                    bell.ring();
                }
                final long limitNs = System.nanoTime() + HANG_NS;
                while (seen.get() != published.get() && !slept) {
                    slept = System.nanoTime() - limitNs > 0;
                    Thread.onSpinWait();
                }
            }
            final int unseen = published.get() - seen.getAndSet(-1);
            bell.answer();   // or the bell of a thread that sleeps for good would stay mute
            bell.ring();
            watch.join();
            assertEquals(0, unseen, "publications beside which the thread sleeps, of " + published.get());
        }
    }
}
