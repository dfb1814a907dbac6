/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class HandoverTest {
    private static final class Thing {
        volatile boolean destroyed;
    }

    @Test
    void shouldPassOneAfterTheOther() {
        final Thing a = new Thing();
        final Thing b = new Thing();
        final Handover<Thing> handover = new Handover<>(a);
        assertFalse(handover.canAdvance());
        handover.offer(b);
        assertTrue(handover.canAdvance());
        assertSame(b, handover.advance());
        assertSame(b, handover.current());
        assertNull(handover.next());
        assertSame(a, handover.retired());
        handover.offer(new Thing());
        assertFalse(handover.canAdvance(), "the one before is not reclaimed");
        handover.reclaimed();
        assertTrue(handover.canAdvance());
    }

    @Test
    void shouldNeverShowTheMakerSomethingItHasDestroyed() throws Exception {
        final int rounds = 2_000_000;
        final Handover<Thing> handover = new Handover<>(new Thing());
        final AtomicLong destroyedSeen = new AtomicLong();
        final Thread user = new Thread(() -> {
            for (int i = 0; i < rounds; i++) {
                while (!handover.canAdvance()) {
                    Thread.onSpinWait();
                }
                handover.advance();
            }
        });
        user.start();
        int made = 0;
        while (user.isAlive()) {
            final Thing old = handover.retired();
            if (old != null) {
                old.destroyed = true;
                if (handover.current().destroyed) {
                    destroyedSeen.incrementAndGet();
                }
                handover.reclaimed();
            }
            if (made < rounds && handover.next() == null) {
                handover.offer(new Thing());
                made++;
            }
        }
        user.join();
        assertEquals(0, destroyedSeen.get());
    }
}
