/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.dispatch;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ScarceMemoryTest {
    @Test
    void shouldSayInOneLineThatMemoryIsTooSmallBeforeTheKernelKillsTheDaemon() {
        assertEquals("this machine, or its control group, has 256 MiB of memory, and the daemon needs 384 MiB and "
            + "1.1 MiB for each client; the kernel may kill it. Raise the limit", OutOfMemory.warning(256L << 20));
        assertEquals("", OutOfMemory.warning(OutOfMemory.ENOUGH_BYTES));
    }
}
