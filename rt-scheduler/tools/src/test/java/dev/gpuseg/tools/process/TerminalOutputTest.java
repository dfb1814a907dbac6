/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import org.junit.jupiter.api.Test;

class TerminalOutputTest {
    @Test
    void shouldUseColoursOnATerminalOnly() {
        assertEquals(new TerminalOutput(true, true), TerminalOutput.of("/dev/pts/3", Map.of("TERM", "xterm")));
        assertEquals(new TerminalOutput(true, true), TerminalOutput.of("/dev/tty1", Map.of()));
        assertEquals(TerminalOutput.PLAIN, TerminalOutput.of("pipe:[4711]", Map.of("TERM", "xterm")));
        assertEquals(TerminalOutput.PLAIN, TerminalOutput.of("/tmp/file", Map.of()));
        assertEquals("\033[1;31mlate\033[0m", new TerminalOutput(true, true).red("late"));
        assertEquals("late", TerminalOutput.PLAIN.red("late"));
        assertEquals("", TerminalOutput.PLAIN.clearLine());
    }

    @Test
    void shouldRespectNoColorAndDumbTerminals() {
        assertEquals(new TerminalOutput(true, false), TerminalOutput.of("/dev/pts/3", Map.of("NO_COLOR", "1")));
        assertEquals(new TerminalOutput(true, true), TerminalOutput.of("/dev/pts/3", Map.of("NO_COLOR", "")));
        assertEquals(TerminalOutput.PLAIN, TerminalOutput.of("/dev/pts/3", Map.of("TERM", "dumb")));
    }
}
