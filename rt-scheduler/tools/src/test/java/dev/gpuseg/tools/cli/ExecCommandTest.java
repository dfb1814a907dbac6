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
import picocli.CommandLine.Model.OptionSpec;

/** The help of {@code gpuseg exec} is written twice, in C and here, and must say the same. */
@Timeout(60)
class ExecCommandTest {
    private static final Pattern OPTION = Pattern.compile("(--[a-z-]+)");

    private static CommandLine command() {
        return Gpuseg.commandLine().getSubcommands().get("exec");
    }

    private static String helpOfTheProgram() throws IOException, InterruptedException {
        final Process process = new ProcessBuilder(NativePrograms.ofClientLibrary("gpuseg-exec").toString(), "--help")
            .start();
        final String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor());
        return text.replaceAll("\\s+", " ");
    }

    @Test
    void shouldHaveTheOptionsOfTheProgram() throws IOException, InterruptedException {
        final SortedSet<String> ours = new TreeSet<>();
        command().getCommandSpec().options().forEach(option -> ours.add(option.longestName()));
        final SortedSet<String> theirs = new TreeSet<>();
        final Matcher match = OPTION.matcher(helpOfTheProgram());
        while (match.find()) {
            theirs.add(match.group(1));
        }
        assertEquals(theirs, ours);
    }

    @Test
    void shouldDescribeThemInTheSameWords() throws IOException, InterruptedException {
        final String help = helpOfTheProgram();
        for (final OptionSpec option : command().getCommandSpec().options()) {
            final String words = String.join(" ", option.description());
            assertTrue(help.contains(words), option.longestName() + ": " + words);
        }
        for (final String paragraph : command().getCommandSpec().usageMessage().description()) {
            assertTrue(help.contains(paragraph), paragraph);
        }
        for (final String variable : command().getCommandSpec().usageMessage().footer()) {
            assertTrue(help.contains(variable.strip()), variable);
        }
    }

    @Test
    void shouldLeaveTheOptionsOfTheCommandToIt() {
        final CommandLine.ParseResult parsed = Gpuseg.commandLine()
            .parseArgs("exec", "--priority", "5", "python3", "--help", "--name", "x").subcommand();
        assertEquals("[python3, --help, --name, x]", parsed.matchedPositional(0).getValue().toString());
        assertEquals("5", parsed.matchedOption("--priority").getValue());
        assertTrue(!parsed.hasMatchedOption("--name"));
    }

    @Test
    void shouldPassOnTheStatus() {
        assertEquals(9, Gpuseg.commandLine().execute("exec", "--best-effort", "--", "/bin/sh", "-c", "exit 9"));
        assertEquals(2, Gpuseg.commandLine().execute("exec", "--priority", "0", "--", "/bin/true"));
    }
}
