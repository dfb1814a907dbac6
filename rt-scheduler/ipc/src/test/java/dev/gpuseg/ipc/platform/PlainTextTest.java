/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.ipc.platform;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class PlainTextTest {
    @TempDir
    private Path directory;

    @Test
    void shouldLeavePlainTextAlone() {
        for (final String text : new String[] {"", "camera", "lidar #2 (left)", "Größe 模型 <b>&\"'", "😀"}) {
            assertEquals(text, PlainText.of(text));
        }
    }

    @Test
    void shouldReplaceWhatATerminalWouldObey() {
        assertEquals("\ufffd]0;title\ufffd", PlainText.of("\u001b]0;title\u0007"));
        assertEquals("\ufffd[31mred", PlainText.of("\u001b[31mred"));
        assertEquals("\ufffd31m", PlainText.of("\u009b31m"), "CSI of eight bits");
        assertEquals("a\ufffdb\ufffdc\ufffd\ufffd", PlainText.of("a\nb\rc\u2028\u2029"));
    }

    @Test
    void shouldReplaceMarksOfDirectionAndInvisibleOnes() {
        assertEquals("\ufffdevil\ufffd", PlainText.of("\u202Eevil\u2066"));
        assertEquals("a\ufffdb\ufffd\ufffd", PlainText.of("a\u200Bb\uFEFF\ud800"));
    }

    @Test
    void shouldCutWhatIsTooLong() {
        final String cut = PlainText.of("x".repeat(10_000));
        assertEquals("x".repeat(PlainText.LENGTH_MAX) + "...", cut);
        assertEquals("ab...", PlainText.of("abc", 2));
    }

    @Test
    void shouldShowTheNameThatAProcessGaveItselfAsPlainText() throws Exception {
        final Path program = Files.copy(Path.of("/bin/sleep"), directory.resolve("\u001b[31m\u009b;x"));
        final Process process = new ProcessBuilder(program.toString(), "60").start();
        try {
            String name = ProcessStatus.commandName((int) process.pid());
            while (!name.contains("[31m")) {
                Thread.sleep(1);   // the launcher has not become the program yet
                name = ProcessStatus.commandName((int) process.pid());
            }
            assertTrue(name.codePoints().allMatch(PlainText::isPlain), name);
        } finally {
            process.destroyForcibly();
        }
    }
}
