/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class RecordRateTest {
    private static final long NOW = 5_000_000_000L;
    private static final long PER_SECOND = 200_000;
    private static final int POLL = 16;

    private final RecordRate.Users users = new RecordRate.Users();

    @Test
    void shouldBeOneForAllProcessesOfAUser() {
        final RecordRate rate = users.of(7, PER_SECOND, NOW);
        assertSame(rate, users.of(7, PER_SECOND, NOW + 1));
        assertNotSame(rate, users.of(8, PER_SECOND, NOW));
        assertNull(users.of(9, Long.MAX_VALUE, NOW));
    }

    @Test
    void shouldBoundWhatIsTakenInEveryWindow() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        final SplittableRandom random = new SplittableRandom(1);
        long now = NOW;
        long taken = 0;
        int waits = 0;
        for (int i = 0; i < 200_000; i++) {
            final int n = rate.allowed(POLL, now);
            rate.took(n, 0);
            taken += n;
            waits += n == 0 ? 1 : 0;
            now += random.nextInt(2_000);
            assertTrue(taken <= (now - NOW + RecordRate.BURST_NS) * PER_SECOND / 1_000_000_000 + POLL,
                "taken " + taken);
        }
        assertTrue(taken >= (now - NOW) * PER_SECOND / 1_000_000_000, "its rate is its own: " + taken);
        assertTrue(waits > 0);
    }

    @Test
    void shouldNeverWaitBelowTheRate() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        for (long i = 0; i < 100_000; i++) {
            assertEquals(1, rate.allowed(POLL, NOW + i * 6_000) > 0 ? 1 : 0);
            rate.took(1, 0);
        }
    }

    @Test
    void shouldBeReadyWhenItSaysSo() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        while (rate.allowed(POLL, NOW) > 0) {
            rate.took(rate.allowed(POLL, NOW), 0);
        }
        final long ready = rate.readyNs();
        assertTrue(ready > NOW);
        assertEquals(0, rate.allowed(POLL, ready - 1));
        assertEquals(POLL, rate.allowed(POLL, ready));
    }

    @Test
    void shouldBoundTheTimeThatRecordsOfAUserTake() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        final SplittableRandom random = new SplittableRandom(2);
        long now = NOW;
        long busyNs = 0;
        while (now - NOW < 5_000_000_000L) {
            final int n = rate.allowed(POLL, now);
            final long tookNs = n * (10_000 + random.nextLong(10_000));   // ten times what a compiled one takes
            if (n > 0) {   // else nothing is polled
                rate.took(n, rate.isBusy() ? tookNs : 0);
            }
            busyNs += tookNs;
            now += tookNs + 100;
            assertTrue(busyNs <= (now - NOW + RecordRate.BURST_NS) * RecordRate.PERCENT / 100 + 2 * POLL * 20_000,
                "took " + busyNs + " of " + (now - NOW));
        }
        assertTrue(busyNs >= (now - NOW) * (RecordRate.PERCENT - 2) / 100, "and leaves it that much: " + busyNs);
    }

    @Test
    void shouldNotMeasureAUserWhoWritesNowAndThen() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        assertFalse(rate.isBusy());
        rate.took(1, 0);
        assertTrue(rate.isBusy());
        rate.took(0, 0);
        assertFalse(rate.isBusy());
    }

    @Test
    void shouldNotChargeAUserForAStopOfTheMachine() {
        final RecordRate rate = users.of(1, PER_SECOND, NOW);
        rate.took(POLL, 0);
        rate.took(POLL, 50_000_000);
        assertTrue(rate.allowed(POLL, NOW + RecordRate.BURST_NS) > 0);
    }
}
