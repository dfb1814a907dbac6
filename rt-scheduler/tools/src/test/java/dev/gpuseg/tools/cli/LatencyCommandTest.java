/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.command.NativePrograms;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.SortedSet;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;

/** The help of {@code gpuseg latency} is written twice, in C and here, and must say the same. */
@Timeout(60)
class LatencyCommandTest {
    private static CommandLine command() {
        return Gpuseg.commandLine().getSubcommands().get("latency");
    }

    private static String helpOfTheProgram() throws IOException, InterruptedException {
        final Process process = new ProcessBuilder(NativePrograms.named("gpuseg-latency").toString(), "--help").start();
        final String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor());
        return text.replaceAll("\\s+", " ");
    }

    private static SortedSet<String> optionsIn(final String text) {
        final SortedSet<String> options = new TreeSet<>();
        final Matcher match = Pattern.compile("  ?(--[a-z]+)[ :]").matcher(text);
        while (match.find()) {
            options.add(match.group(1));
        }
        return options;
    }

    @Test
    void shouldDescribeTheOptionsOfTheProgramInItsWords() throws IOException, InterruptedException {
        final String help = helpOfTheProgram();
        final String[] footer = command().getCommandSpec().usageMessage().footer();
        assertTrue(footer.length > 10, "the options are listed");
        for (final String line : footer) {
            assertTrue("Options:".equals(line) || help.contains(line.strip()), line);
        }
        for (final String paragraph : command().getCommandSpec().usageMessage().description()) {
            assertTrue(help.contains(paragraph), paragraph);
        }
        assertEquals(optionsIn(help), optionsIn(String.join("\n", footer)));
    }

    @Test
    void shouldPassEverythingOn() {
        final CommandLine.ParseResult parsed = Gpuseg.commandLine()
            .parseArgs("latency", "--work", "5ms", "--json", "--load=copies").subcommand();
        assertEquals("[--work, 5ms, --json, --load=copies]", parsed.matchedPositional(0).getValue().toString());
    }

    @Test
    void shouldPassOnTheStatus() {
        assertEquals(2, Gpuseg.commandLine().execute("latency", "--period", "1"));
        assertEquals(2, Gpuseg.commandLine().execute("latency", "--no-such-option"));
    }
}
