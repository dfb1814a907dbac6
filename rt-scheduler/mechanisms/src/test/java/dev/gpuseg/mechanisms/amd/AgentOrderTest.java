/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.agrona.concurrent.UnsafeBuffer;
import org.junit.jupiter.api.Test;

/** Orders of the daemon and of the watchdog that meet in one word. */
class AgentOrderTest {
    private static final int HOLD = 1;

    /** A word that the watchdog changes right after the daemon has read it. */
    private static final class Word extends UnsafeBuffer {
        private final Deque<Boolean> ordersOfTheWatchdog;

        Word(final Boolean... orders) {
            super(new byte[8]);
            ordersOfTheWatchdog = new ArrayDeque<>(List.of(orders));
        }

        @Override
        public int getIntVolatile(final int index) {
            final int read = super.getIntVolatile(index);
            if (!ordersOfTheWatchdog.isEmpty()) {
                super.putIntVolatile(index, (read | HOLD) + 1 | (ordersOfTheWatchdog.pop() ? HOLD : 0));
            }
            return read;
        }
    }

    @Test
    void shouldCountOneMoreThanTheNewestOrder() {
        final Word word = new Word();
        assertEquals(3, AgentPage.replaceOrder(word, 0, true));
        assertEquals(4, AgentPage.replaceOrder(word, 0, false));
        assertEquals(7, AgentPage.replaceOrder(word, 0, true));
        assertEquals(7, word.getIntVolatile(0));
    }

    @Test
    void shouldReplaceAReleaseOfTheWatchdogAndNotOverwriteItUnseen() {
        final Word word = new Word(false);
        assertEquals(2 << 1 | HOLD, AgentPage.replaceOrder(word, 0, true), "the watchdog's is the first");
        final Word again = new Word(false, false, true);
        assertEquals(4 << 1, AgentPage.replaceOrder(again, 0, false), "no number is used twice");
        assertEquals(4 << 1, again.getIntVolatile(0));
    }
}
