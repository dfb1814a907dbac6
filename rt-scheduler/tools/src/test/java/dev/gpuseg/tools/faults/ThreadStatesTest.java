/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

class ThreadStatesTest {
    @Test
    void shouldSayOfEveryThreadWhatItDoes() throws Exception {
        final CountDownLatch end = new CountDownLatch(1);
        final CountDownLatch runs = new CountDownLatch(1);
        final Thread thread = new Thread(() -> {
            runs.countDown();
            try {
                end.await();
            } catch (final InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }, "a (strange) one");
        thread.start();
        runs.await();
        final List<String> lines = ThreadStates.of(ProcessHandle.current().pid());
        end.countDown();
        thread.join();
        assertTrue(lines.stream().anyMatch(line -> line.matches("a \\(strange\\) one: [A-Z] in \\S*, \\d+ major "
            + "faults, \\d+ and \\d+ ticks of user and kernel time")), lines.toString());
    }

    @Test
    void shouldSayNothingOfAProcessThatHasEnded() throws Exception {
        final Process ended = new ProcessBuilder("true").start();
        ended.waitFor();
        assertEquals(List.of(), ThreadStates.of(ended.pid()));
    }
}
