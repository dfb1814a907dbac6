/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.reference;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.gpuseg.tools.cli.Gpuseg;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** How much a user has to read: the options of the command line, and their order. */
class OptionCountTest {
    private static final int RUN_MAX = 20;
    private static final int ALL_MAX = 160;

    private static final CommandSpec ROOT = Gpuseg.commandLine().getCommandSpec();

    /** All commands, hidden ones too. */
    private static List<CommandSpec> below(final CommandSpec command) {
        final List<CommandSpec> all = new ArrayList<>(List.of(command));
        command.subcommands().values().stream().distinct().map(CommandLine::getCommandSpec)
            .forEach(sub -> all.addAll(below(sub)));
        return all;
    }

    private static List<String> options(final CommandSpec command) {
        return command.options().stream().filter(option -> !option.usageHelp() && !option.versionHelp()
            && !option.inherited()).map(OptionSpec::longestName).toList();
    }

    @Test
    void shouldLeaveToTheSettingsFileWhatIsSetOnceForAMachine() {
        final List<String> run = options(ROOT.subcommands().get("run").getCommandSpec());
        assertTrue(run.size() <= RUN_MAX, "gpuseg run has " + run.size() + " options, at most " + RUN_MAX
            + ": " + run + "; put the new one into SettingKeys");
    }

    @Test
    void shouldHaveFewOptionsInAll() {
        final TreeMap<String, List<String>> all = new TreeMap<>();
        below(ROOT).forEach(command -> all.put(command.qualifiedName(" "), options(command)));
        assertTrue(all.size() > 30, all.keySet().toString());
        final int count = all.values().stream().mapToInt(List::size).sum();
        final StringBuilder list = new StringBuilder();
        all.forEach((name, options) -> list.append('\n').append(options.size()).append(' ').append(name).append(' ')
            .append(options));
        assertTrue(count <= ALL_MAX, count + " options, at most " + ALL_MAX + ": an option is a question that could "
            + "not be answered" + list);
    }

    @Test
    void shouldListTheCommandsOfEveryDayFirstAndEachOnce() {
        final String help = ROOT.commandLine().getUsageMessage(Ansi.OFF);
        int at = help.indexOf("\nEveryday:\n");
        assertTrue(at > 0, help);
        for (final String name : List.of("run", "exec", "status", "top", "set", "doctor", "demo", "analyze")) {
            final int next = help.indexOf("\n  " + name + " ");
            assertTrue(next > at, name + " after the one before: " + help);
            at = next;
        }
        assertTrue(at < help.indexOf("\nThe running daemon:\n"), "then the others: " + help);
        for (final CommandLine command : ROOT.subcommands().values()) {
            final String name = command.getCommandSpec().name();
            if (!command.getCommandSpec().usageMessage().hidden()) {
                assertEquals(2, help.split("\n  " + name + " ", -1).length, name + " once: " + help);
            }
        }
    }

    @Test
    void shouldPutEveryOptionOfRunIntoAGroup() {
        final String help = ROOT.subcommands().get("run").getUsageMessage(Ansi.OFF);
        final String rest = help.substring(help.indexOf("\nHelp:\n"), help.indexOf("\nMechanisms, best first"));
        assertTrue(help.indexOf("\nEveryday:\n") < help.indexOf("\nLatency:\n"), help);
        assertEquals(List.of("-h, --help", "-V, --version"), rest.lines().map(String::strip)
            .filter(line -> line.startsWith("-")).map(line -> line.replaceFirst(" {2,}.*", "")).toList(), help);
    }
}
