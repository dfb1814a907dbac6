/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.jvm;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(120)
class ScarceMemoryTest {
    /** In a JVM of its own. */
    static final class WithoutManagement {
        private WithoutManagement() {
        }

        public static void main(final String[] arguments) {
            System.out.println(ModuleLayer.boot().findModule("jdk.management").isPresent() + OutOfMemory.warning());
        }
    }

    @Test
    void shouldSayInOneLineThatMemoryIsTooSmallBeforeTheKernelKillsTheDaemon() {
        assertEquals("this machine, or its control group, has 256 MiB of memory, and the daemon needs 384 MiB and "
            + "1.1 MiB for each client; the kernel may kill it. Raise the limit", OutOfMemory.warning(256L << 20));
        assertEquals("", OutOfMemory.warning(OutOfMemory.ENOUGH_BYTES));
    }

    @Test
    void shouldSayNothingWhereTheRuntimeDoesNotKnowTheMemory() throws Exception {
        final Process process = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--limit-modules", "java.base,java.management", "-cp", System.getProperty("java.class.path"),
            WithoutManagement.class.getName()).redirectErrorStream(true).start();
        assertEquals("false", new String(process.getInputStream().readAllBytes()).strip());
        assertEquals(0, process.waitFor());
    }
}
