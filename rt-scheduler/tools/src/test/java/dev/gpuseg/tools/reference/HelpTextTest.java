/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.reference;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.daemon.launch.CommandLines;
import dev.gpuseg.daemon.launch.DaemonMain;
import dev.gpuseg.tools.cli.Gpuseg;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;

/** Help texts of all commands; the manual pages and the completion are generated from them. */
@Timeout(60)
class HelpTextTest {
    @Test
    void shouldUseNoWordThatDocumentsDoNotUse() throws IOException {
        final List<String> found = new ArrayList<>();
        for (final CommandSpec command : commands()) {
            final String text = command.commandLine().getUsageMessage(Ansi.OFF).replaceAll("\\s+", " ");
            for (final Pattern word : words()) {
                final Matcher match = word.matcher(text);
                if (match.find()) {
                    found.add(command.qualifiedName(" ") + ": " + match.group());
                }
            }
        }
        assertEquals(List.of(), found, "see packaging/tests/words");
    }

    @Test
    void shouldDescribeEveryOptionInASentence() {
        final List<String> bad = new ArrayList<>();
        for (final CommandSpec command : commands()) {
            for (final ArgSpec argument : command.args()) {
                final String text = String.join(" ", argument.description());
                if (!argument.hidden() && !text.endsWith(".")) {
                    bad.add(command.qualifiedName(" ") + " " + argument.paramLabel() + ": " + text);
                }
            }
        }
        assertEquals(List.of(), bad, "descriptions are sentences with a full stop");
    }

    @Test
    void shouldEscapeEveryPercentSignSinceHelpTextsAreFormats() {
        for (final CommandSpec command : commands()) {
            final List<String> lines = new ArrayList<>(List.of(command.usageMessage().description()));
            lines.addAll(List.of(command.usageMessage().footer()));
            command.args().forEach(argument -> lines.addAll(List.of(argument.description())));
            for (final String line : lines) {
                assertDoesNotThrow(() -> String.format(line), () -> command.qualifiedName(" ") + ": " + line);
            }
        }
    }

    private static List<CommandSpec> commands() {
        final List<CommandSpec> all = new ArrayList<>(ReferenceFiles.allOf(Gpuseg.commandLine().getCommandSpec()));
        all.addAll(ReferenceFiles.allOf(CommandLines.of(new DaemonMain()).getCommandSpec()));
        assertTrue(all.size() > 30, all.size() + " commands");
        return all;
    }

    /** The first column of the list that packaging/tests/links reads, too. */
    private static List<Pattern> words() throws IOException {
        final List<Pattern> words = Files.readAllLines(
            Path.of(System.getProperty("gpuseg.root"), "packaging/tests/words")).stream()
            .filter(line -> !line.isBlank() && !line.startsWith("#"))
            .map(line -> Pattern.compile("(?i)\\b(?:" + line.substring(0, line.indexOf('\t')) + ")\\b")).toList();
        assertTrue(words.size() > 10 && words.get(0).matcher("a RUNG of a ladder").find(), words.toString());
        return words;
    }
}
