/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.reference;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.analysis.io.TaskSetFormat;
import dev.gpuseg.daemon.conductor.ConductorCounter;
import dev.gpuseg.daemon.launch.CommandLines;
import dev.gpuseg.daemon.launch.DaemonMain;
import dev.gpuseg.daemon.launch.RunSettings;
import dev.gpuseg.tools.cli.Gpuseg;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

@Timeout(60)
class ReferenceFilesTest {
    @TempDir
    private Path directory;

    @Test
    void shouldWriteAPageForEveryCommandThatNamesEveryOption() throws Exception {
        ReferenceFiles.write(directory, "2026-11-21");
        final List<CommandSpec> commands = new ArrayList<>(ReferenceFiles.allOf(Gpuseg.commandLine().getCommandSpec()));
        assertTrue(commands.size() > 10, commands.size() + " commands");
        commands.addAll(ReferenceFiles.allOf(CommandLines.of(new DaemonMain()).getCommandSpec()));
        assertTrue(commands.stream().anyMatch(command -> "gpuseg-daemon run".equals(command.qualifiedName(" "))));
        for (final CommandSpec command : commands) {
            final String page = Files.readString(directory.resolve(command.qualifiedName("-") + ".1"));
            for (final OptionSpec option : command.options()) {
                final String name = option.longestName().replaceFirst("^--", option.negatable() ? "--[no-]" : "--");
                assertTrue(page.contains(name.replace("-", "\\-")), command.qualifiedName(" ") + " " + name);
            }
            assertTrue(!page.contains("${"), page);
            assertTrue(page.matches("(?s).*\\.SH EXAMPLES\n\\.PP\n.+?\\.EX\n.+?\\.EE\n.*"), command.qualifiedName(" "));
            assertEquals(command.usageMessage().footer().length > 0, page.contains("\n.SH NOTES\n.PP\n"), page);
        }
        final String policy = Files.readString(directory.resolve("gpuseg-policy.1"));
        assertTrue(policy.contains("class_width, 1..99, default 1: "), "the notes of the help: " + policy);
    }

    @Test
    void shouldGiveOnlyExamplesThatTheCommandLineTakes() throws Exception {
        for (final Examples.Example example : Examples.read().all()) {
            assertTrue(example.text().endsWith(".") && !example.commands().isEmpty(), example.toString());
            for (final String command : example.commands()) {
                final String[] words = command.split(" ");
                final CommandLine program = words[0].equals("gpuseg") ? Gpuseg.commandLine()
                    : CommandLines.of(new DaemonMain());
                assertDoesNotThrow(() -> program.parseArgs(Arrays.copyOfRange(words, 1, words.length)), command);
            }
        }
    }

    @Test
    void shouldDescribeEveryKeyOfTheSettingsFile() throws Exception {
        ReferenceFiles.write(directory, "2026-11-21");
        final String page = Files.readString(directory.resolve("gpuseg.yaml.5"));
        for (final String key : new RunSettings().all()) {
            assertTrue(page.contains(".B " + key.replace("-", "\\-") + "\n"), key);
        }
    }

    @Test
    void shouldDescribeEveryCounter() throws Exception {
        ReferenceFiles.write(directory, "2026-11-21");
        final String page = Files.readString(directory.resolve("gpuseg-counters.7"));
        assertTrue(page.contains(".TP\n.B preemptions\nSegments preempted by one of higher rank.\n"), page);
        for (final ConductorCounter counter : ConductorCounter.values()) {
            assertTrue(page.contains(".B conductor_" + counter.name().toLowerCase(Locale.ROOT) + "\n"), "" + counter);
        }
    }

    @Test
    void shouldDescribeEveryKeyOfATaskSetAndGiveTheExample() throws Exception {
        ReferenceFiles.write(directory, "2026-11-21");
        final String page = Files.readString(directory.resolve("gpuseg-taskset.5"));
        for (final TaskSetFormat.Section section : TaskSetFormat.sections()) {
            final String heading = ".SH KEYS OF " + section.title().toUpperCase(Locale.ROOT) + "\n";
            assertTrue(page.contains(heading), heading);
            final String below = page.substring(page.indexOf(heading)).replaceFirst("(?s)(?<=.)\\.SH EXAMPLES.*", "");
            section.keys().keySet().forEach(key -> assertTrue(below.contains("\n.B " + key + "\n"), key));
        }
        final String example = page.substring(page.indexOf(".SH EXAMPLES\n.EX\n") + ".SH EXAMPLES\n.EX\n".length(),
            page.indexOf(".EE\n.SH SEE ALSO")).replace("\\-", "-");
        assertEquals(TaskSetFormat.example(), example);
    }

    @Test
    void shouldWriteTheSameBytesAgain() throws Exception {
        ReferenceFiles.write(directory.resolve("a"), "2026-11-21");
        ReferenceFiles.write(directory.resolve("b"), "2026-11-21");
        try (var files = Files.list(directory.resolve("a"))) {
            for (final Path file : files.toList()) {
                assertEquals(-1, Files.mismatch(file, directory.resolve("b").resolve(file.getFileName())), "" + file);
            }
        }
    }

    @Test
    void shouldWritePagesThatGroffReadsWithoutAWarning() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/groff")), "groff is not installed");
        ReferenceFiles.write(directory, "2026-11-21");
        try (var files = Files.list(directory)) {
            for (final Path page : files.filter(file -> file.toString().matches(".*\\.[157]")).toList()) {
                assertEquals("", output("groff", "-man", "-Tutf8", "-ww", "-z", page.toString()));
            }
        }
    }

    @Test
    void shouldCompleteInBash() throws Exception {
        assumeTrue(Files.isExecutable(Path.of("/bin/bash")), "bash is not installed");
        ReferenceFiles.write(directory, "2026-11-21");
        final String script = "compopt() { :; }; source " + directory.resolve("gpuseg.bash")
            + "; COMP_WORDS=(gpuseg run --tas); COMP_CWORD=2; COMP_LINE='gpuseg run --tas'; COMP_POINT=${#COMP_LINE};"
            + " _complete_gpuseg; echo \"${COMPREPLY[@]}\"";
        assertEquals("--taskset", output("bash", "-c", script).strip());
    }

    private static String output(final String... command) throws Exception {
        final Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        final String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertTrue(process.waitFor(20, TimeUnit.SECONDS));
        return text;
    }
}
