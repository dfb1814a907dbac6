/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.conductor;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class RateLimitTest {
    private static final int ALICE = 1000;
    private static final int BOB = 1001;
    private static final int BURST = 256;
    private static final int PER_SECOND = 20;
    private static final long NS_PER_S = 1_000_000_000L;

    private final RateLimit limit = new RateLimit(BURST, PER_SECOND);

    private int allowed(final int uid, final int asked, final long nowNs) {
        int allowed = 0;
        for (int i = 0; i < asked; i++) {
            allowed += limit.allows(uid, nowNs) ? 1 : 0;
        }
        return allowed;
    }

    @Test
    void shouldAllowABurstAndThenSoManyASecond() {
        assertEquals(BURST, allowed(ALICE, 1000, 0));
        assertEquals(PER_SECOND / 2, allowed(ALICE, 1000, NS_PER_S / 2));
        assertEquals(PER_SECOND * 3, allowed(ALICE, 1000, NS_PER_S / 2 + 3 * NS_PER_S));
    }

    @Test
    void shouldSaveNoMoreThanABurstInAQuietTime() {
        assertEquals(BURST, allowed(ALICE, 1000, 0));
        assertEquals(BURST, allowed(ALICE, 1000, 3600 * NS_PER_S));
    }

    @Test
    void shouldNotLetOneUserUseWhatBelongsToAnother() {
        assertEquals(BURST, allowed(ALICE, 1000, 0));
        assertEquals(BURST, allowed(BOB, 1000, 0));
    }

    @Test
    void shouldGiveAUserNoNewBurstBecauseManyOthersAsk() {
        assertEquals(BURST, allowed(ALICE, 1000, 0));
        for (int other = 0; other < 10_000; other++) {
            limit.allows(100_000 + other, 1);
        }
        assertEquals(0, allowed(ALICE, 1000, 1));
    }
}
