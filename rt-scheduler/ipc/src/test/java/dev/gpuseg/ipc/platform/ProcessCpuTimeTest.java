/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ProcessCpuTimeTest {
    private final ProcessCpuTime time = new ProcessCpuTime();

    @Test
    void shouldGrowWithOwnWork() {
        final int self = (int) ProcessHandle.current().pid();
        final long before = time.readNs(self);
        long now = before;
        while (now - before < 5_000_000) {
            now = time.readNs(self);
        }
        assertTrue(before > 0);
    }

    @Test
    void shouldSeeThatAnotherProcessSleepsAndThatItIsGone() throws IOException, InterruptedException {
        final Process sleeper = new ProcessBuilder("sleep", "1000").start();
        final int pid = (int) sleeper.pid();
        try {
            long last = -1;
            for (long now = time.readNs(pid); now != last; now = time.readNs(pid)) {   // it starts
                last = now;
                Thread.sleep(200);
            }
            assertTrue(last > 0 && last < 1_000_000_000L, () -> "sleep(1) works for some milliseconds");
        } finally {
            sleeper.destroyForcibly().waitFor();
        }
        assertEquals(ProcessCpuTime.GONE, time.readNs(pid));
    }
}
