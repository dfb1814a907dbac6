/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.UsageMessageSpec;

/** What a help text lists, in groups under headings, in an order of their own. Used while a model is made. */
public final class HelpGroups {
    private final Map<String, List<String>> groups = new LinkedHashMap<>();

    /**
     * One more group, below the others.
     *
     * @param heading without colon
     * @param names   of options or of commands
     * @return this
     */
    public HelpGroups with(final String heading, final String... names) {
        groups.put(heading, List.of(names));
        return this;
    }

    /** Lists the options of a command so. Those that are in no group come last, under the usual ones' heading. */
    public void ofOptions(final CommandSpec command) {
        command.usageMessage().sortOptions(false);
        command.usageMessage().sectionMap().put(UsageMessageSpec.SECTION_KEY_OPTION_LIST, help -> {
            final List<OptionSpec> rest = new ArrayList<>(command.options());
            final StringBuilder text = new StringBuilder();
            groups.forEach((heading, names) -> {
                final List<OptionSpec> group = names.stream().map(command::findOption).toList();
                rest.removeAll(group);
                text.append(heading(help, heading)).append(help.optionListExcludingGroups(group));
            });
            return text.append(heading(help, "Help")).append(help.optionListExcludingGroups(rest)).toString();
        });
    }

    /** Lists the commands below a command so. Those that are in no group come last. */
    public void ofCommands(final CommandSpec command) {
        final List<String> rest = command.subcommands().entrySet().stream().filter(sub ->
            !names().contains(sub.getKey()) && !sub.getValue().getCommandSpec().usageMessage().hidden())
            .map(Map.Entry::getKey).toList();
        if (!rest.isEmpty()) {
            groups.put("More", rest);
        }
        command.usageMessage().sectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST_HEADING, help -> "");
        command.usageMessage().sectionMap().put(UsageMessageSpec.SECTION_KEY_COMMAND_LIST, help ->
            groups.entrySet().stream().map(group -> heading(help, group.getKey()) + help.commandList(group.getValue()
                .stream().collect(Collectors.toMap(name -> name, name -> help.subcommands().get(name), (a, b) -> a,
                    LinkedHashMap::new)))).collect(Collectors.joining()));
    }

    private List<String> names() {
        return groups.values().stream().flatMap(List::stream).toList();
    }

    private static String heading(final Help help, final String heading) {
        return help.createHeading("%n" + heading + ":%n");
    }
}
