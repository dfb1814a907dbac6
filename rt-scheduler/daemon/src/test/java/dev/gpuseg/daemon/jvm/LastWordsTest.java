/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import dev.gpuseg.ipc.Attempts;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class LastWordsTest {
    private final PrintStream errors = System.err;

    @AfterEach
    void giveStandardErrorBack() {
        System.setErr(errors);
    }

    /** Nothing comes out before {@link #reads}. */
    private static final class Slow extends OutputStream {
        private final ByteArrayOutputStream written = new ByteArrayOutputStream();
        private final CountDownLatch begun = new CountDownLatch(1);
        private final CountDownLatch reads = new CountDownLatch(1);

        @Override
        public void write(final int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(final byte[] bytes, final int from, final int length) {
            begun.countDown();
            try {
                reads.await();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            written.write(bytes, from, length);
        }
    }

    private static Slow standardError() {
        final Slow slow = new Slow();
        System.setErr(new PrintStream(slow, true, StandardCharsets.UTF_8));
        return slow;
    }

    @Test
    void shouldNotLetTheSecondGoOnBeforeTheWordsOfTheFirstAreOut() throws Exception {
        Attempts.of(3, () -> {   // after a second the end does not wait: a machine that stands still for as long
            final Slow slow = standardError();
            final LastWords words = new LastWords();
            final Thread first = new Thread(() -> words.sayOnce("first"), "first");
            first.start();
            slow.begun.await();
            final String[] out = new String[1];
            final Thread second = new Thread(() -> {
                words.sayOnce("second");
                out[0] = slow.written.toString(StandardCharsets.UTF_8);
            }, "second");
            second.start();
            while (second.isAlive() && second.getState() != Thread.State.BLOCKED) {
                TimeUnit.MILLISECONDS.sleep(1);
            }
            slow.reads.countDown();
            first.join();
            second.join();
            return ("first" + System.lineSeparator()).equals(out[0]) ? null : "written: \"" + out[0] + '"';
        });
    }

    @Test
    void shouldGoOnWhereNobodyReads() {
        final Slow slow = standardError();
        final LastWords words = new LastWords();
        words.sayOnce("first");
        words.sayOnce("second");
        assertEquals(0, slow.written.size());
        slow.reads.countDown();
    }
}
