/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.jvm.OutOfMemory;
import dev.gpuseg.daemon.launch.DaemonMain;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A JVM with the options of the daemon's, in which one thread of several exhausts the memory. */
@Timeout(120)
@Tag("beside")
class OutOfMemoryTest {
    /** What the daemon's threads do: one that fails leaves the others running. */
    static final class Eater {
        private Eater() {
        }

        public static void main(final String[] arguments) throws InterruptedException {
            OutOfMemory.watchThreads();
            final boolean direct = "direct".equals(arguments[0]);
            new Thread(() -> eat(direct)).start();
            TimeUnit.SECONDS.sleep(60);
            System.exit(9);
        }

        private static void eat(final boolean direct) {
            final List<Object> eaten = new ArrayList<>();
            while (eaten.size() < Integer.MAX_VALUE) {
                eaten.add(direct ? ByteBuffer.allocateDirect(1 << 20) : new byte[1 << 20]);
            }
        }
    }

    private static List<String> eater(final String what) {
        final List<String> command = JavaCommand.daemon();
        final List<String> eater = new ArrayList<>(command.subList(0, command.indexOf(DaemonMain.class.getName())));
        eater.add(eater.indexOf("-cp"), "-XX:MaxDirectMemorySize=16m");
        eater.addAll(List.of(Eater.class.getName(), what));
        return eater;
    }

    private static void shouldEnd(final String what) throws IOException, InterruptedException {
        final Process process = new ProcessBuilder(eater(what)).redirectErrorStream(true).start();
        final String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(90, TimeUnit.SECONDS), said);
        assertEquals(OutOfMemory.STATUS, process.exitValue(), said);
    }

    @Test
    void shouldEndAtOnceWhenTheHeapIsFull() throws Exception {
        shouldEnd("heap");
    }

    @Test
    void shouldEndAtOnceWhenNoDirectBufferIsLeft() throws Exception {
        shouldEnd("direct");
    }

    @Test
    void shouldEndAlsoWhenNobodyReadsWhatItSays() throws Exception {
        final List<String> command = new ArrayList<>(List.of("sh", "-c",
            "head -c 65536 /dev/zero >&2; exec \"$@\"", "sh"));   // a pipe takes no more
        command.addAll(eater("direct"));
        final Process process = new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
        try {
            assertTrue(process.waitFor(45, TimeUnit.SECONDS), "it waits for a reader");
            assertEquals(OutOfMemory.STATUS, process.exitValue());
        } finally {
            process.destroyForcibly();
        }
    }
}
