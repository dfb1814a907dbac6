/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.cli;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.gpuseg.command.NativePrograms;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;

/** The help of {@code gpuseg selftest} is written twice, in C and here, and must say the same. */
@Timeout(60)
class SelftestCommandTest {
    private static final Pattern OPTION = Pattern.compile("(--[a-z]+)");

    private static CommandLine command() {
        return Gpuseg.commandLine().getSubcommands().get("selftest");
    }

    private static String helpOfTheProgram() throws IOException, InterruptedException {
        final Process process = new ProcessBuilder(NativePrograms.named("gpuseg-selftest").toString(), "--help")
            .start();
        final String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(0, process.waitFor());
        return text.replaceAll("\\s+", " ");
    }

    private static Set<String> optionsIn(final String text) {
        final Set<String> found = new TreeSet<>();
        final Matcher match = OPTION.matcher(text);
        while (match.find()) {
            found.add(match.group(1));
        }
        return found;
    }

    @Test
    void shouldSayWhatTheProgramSays() throws IOException, InterruptedException {
        final String theirs = helpOfTheProgram();
        for (final String paragraph : command().getCommandSpec().usageMessage().description()) {
            assertTrue(theirs.contains(paragraph), paragraph);
        }
        for (final String line : command().getCommandSpec().usageMessage().footer()) {
            if (line.contains("--")) {
                assertTrue(theirs.contains(line.strip().replaceAll("\\s+", " ")), line);
            }
        }
        for (final String meaning : command().getCommandSpec().usageMessage().exitCodeList().values()) {
            assertTrue(theirs.contains(meaning), meaning);
        }
        final Set<String> ours = optionsIn(command().getUsageMessage(Ansi.OFF));
        assertTrue(ours.remove("--version"), ours.toString());
        assertEquals(optionsIn(theirs), ours);
    }

    @Test
    void shouldPassItsWordsAndTheStatusOn() {
        assertEquals(2, Gpuseg.commandLine().execute("selftest", "--no-such-option"));
        assertEquals(2, Gpuseg.commandLine().execute("selftest", "--json", "word"));
    }

    @Test
    void shouldSayInOneLineWhereThereIsNoDriver() throws IOException, InterruptedException {
        for (final String file : List.of("/proc/driver/nvidia/version", "/dev/nvhost-sched-gpu", "/dev/kfd")) {
            assumeFalse(Files.exists(Path.of(file)), "a GPU's driver is loaded: " + file);
        }
        final Process process = new ProcessBuilder(NativePrograms.named("gpuseg-selftest").toString())
            .redirectErrorStream(true).start();
        final String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(3, process.waitFor(), said);
        assertEquals(1, said.lines().count(), said);
        assertTrue(said.contains("no GPU driver"), said);
    }
}
