/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.reference;

import dev.gpuseg.analysis.io.TaskSetFormat;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.conductor.ConductorCounter;
import dev.gpuseg.daemon.dispatch.Counter;
import dev.gpuseg.daemon.launch.CommandLines;
import dev.gpuseg.daemon.launch.DaemonMain;
import dev.gpuseg.daemon.launch.RunSettings;
import dev.gpuseg.tools.cli.Gpuseg;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import picocli.AutoComplete;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.Model.PositionalParamSpec;

/**
 * Writes the manual pages of all commands of {@code gpuseg} and {@code gpuseg-daemon}, and the completion of
 * {@code gpuseg} for bash, zsh and fish, from the command lines' own models:
 * {@code java ... dev.gpuseg.tools.reference.ReferenceFiles DIR EPOCH-SECONDS}. The same input gives the same bytes.
 */
public final class ReferenceFiles {
    private final String date;
    private final String version;

    private final Examples examples;

    private ReferenceFiles(final String date, final String version, final Examples examples) {
        this.examples = examples;
        this.date = date;
        this.version = version;
    }

    /**
     * Writes everything.
     *
     * @param arguments directory to write to; seconds since 1970 that the pages are dated with
     * @throws IOException if a file cannot be written
     */
    public static void main(final String[] arguments) throws IOException {
        if (arguments.length != 2) {
            System.err.println("gpuseg: give DIR and EPOCH-SECONDS");
            System.exit(ExitCode.USAGE);
        }
        final String date = DateTimeFormatter.ISO_LOCAL_DATE.withZone(ZoneOffset.UTC)
            .format(Instant.ofEpochSecond(Long.parseLong(arguments[1])));
        write(Path.of(arguments[0]), date);
    }

    static void write(final Path directory, final String date) throws IOException {
        final CommandLine root = Gpuseg.commandLine();
        final ReferenceFiles files = new ReferenceFiles(date, String.join("", root.getCommandSpec().version()),
            Examples.read());
        Files.createDirectories(directory);
        for (final CommandLine program : List.of(root, CommandLines.of(new DaemonMain()))) {
            for (final CommandSpec command : allOf(program.getCommandSpec())) {
                Files.writeString(directory.resolve(pageName(command) + ".1"), files.page(command));
            }
        }
        Files.writeString(directory.resolve("gpuseg.yaml.5"), files.settings());
        Files.writeString(directory.resolve("gpuseg-taskset.5"), files.taskSet());
        Files.writeString(directory.resolve("gpuseg-counters.7"), files.counters());
        Files.writeString(directory.resolve("gpuseg.bash"), files.bash(root));
        Files.writeString(directory.resolve("_gpuseg"), zsh());
        Files.writeString(directory.resolve("gpuseg.fish"), fish(root.getCommandSpec()));
    }

    /** A command and all below it, each once (an alias is no command), hidden ones left out. */
    static List<CommandSpec> allOf(final CommandSpec root) {
        final List<CommandSpec> all = new ArrayList<>(List.of(root));
        for (final CommandSpec sub : children(root)) {
            all.addAll(allOf(sub));
        }
        return all;
    }

    private static List<CommandSpec> children(final CommandSpec command) {
        return command.subcommands().values().stream().map(CommandLine::getCommandSpec).distinct()
            .filter(sub -> !sub.usageMessage().hidden()).toList();
    }

    private static String pageName(final CommandSpec command) {
        return command.qualifiedName("-");
    }

    // ---- manual pages

    private String page(final CommandSpec command) {
        final StringBuilder page = new StringBuilder(".\\\" SPDX-License-Identifier: Apache-2.0\n");
        page.append(".TH ").append(roff(pageName(command).toUpperCase(Locale.ROOT))).append(" 1 ")
            .append(date).append(" \"").append(roff(version)).append("\" \"gpuseg manual\"\n");
        final String description = String.join(" ", command.usageMessage().description());
        page.append(".SH NAME\n").append(roff(pageName(command))).append(" \\- ").append(brief(description))
            .append("\n.SH SYNOPSIS\n").append(synopsis(command));
        page.append(".SH DESCRIPTION\n").append(roff(description)).append('\n');
        arguments(command, page);
        final List<CommandSpec> below = children(command);
        if (!below.isEmpty()) {
            page.append(".SH COMMANDS\n");
            for (final CommandSpec sub : below) {
                page.append(".TP\n.BR ").append(roff(pageName(sub))).append(" (1)\n")
                    .append(roff(String.join(" ", sub.usageMessage().description()))).append('\n');
            }
        }
        notes(command, page);
        examples(command, page);
        page.append(".SH EXIT STATUS\n.TP\n.B 0\nDone, or yes.\n.TP\n.B 1\nFailure.\n.TP\n.B 2\nUsage.\n"
            + ".TP\n.B 3\nThe answer is no.\n");
        page.append(".SH ENVIRONMENT\n.TP\n.B GPUSEG_DIR\nThe runtime directory.\n"
            + ".TP\n.B GPUSEG_JAVA_OPTS\nFurther options of the Java virtual machine.\n");
        page.append(".SH FILES\n.TP\n.I /etc/gpuseg/gpuseg.yaml\nSettings of the installed daemon.\n"
            + ".TP\n.I /run/gpuseg\nWhere the installed daemon and its clients meet.\n");
        page.append(".SH SEE ALSO\n");
        if (command.parent() != null) {
            page.append(".BR ").append(roff(pageName(command.parent()))).append(" (1),\n");
        }
        return page.append(".BR gpuseg (7)\n").toString();
    }

    /** What the help says last: mechanisms, policies and their parameters. */
    private static void notes(final CommandSpec command, final StringBuilder page) {
        final String text = String.join("\n", command.usageMessage().footer()).replace("%n", "\n").strip();
        final String[] lines = text.split("\n");
        if (text.isEmpty()) {
            return;
        }
        page.append(".SH NOTES\n.PP\n");
        for (final String line : lines) {
            if (line.isBlank()) {
                page.append(".PP\n");
            } else {
                page.append(line.startsWith(" ") ? ".br\n" : "").append(roff(line.strip())).append('\n');
            }
        }
    }

    private void examples(final CommandSpec command, final StringBuilder page) {
        final String name = command.qualifiedName(" ");
        final List<Examples.Example> own = new ArrayList<>(examples.of(name));
        if (own.isEmpty()) {   // the root of a program
            own.addAll(examples.of(name + " run"));
        }
        page.append(".SH EXAMPLES\n");
        for (final Examples.Example example : own) {
            page.append(".PP\n").append(roff(example.text())).append("\n.PP\n.EX\n");
            example.commands().forEach(line -> page.append(roff(line)).append('\n'));
            page.append(".EE\n");
        }
    }

    /** The begin of a page of section 5 or 7, up to what describes the subject. */
    private StringBuilder format(final String name, final int section, final String what) {
        return new StringBuilder(".\\\" SPDX-License-Identifier: Apache-2.0\n.TH ")
            .append(name.toUpperCase(Locale.ROOT)).append(' ').append(section).append(' ')
            .append(date).append(" \"").append(roff(version)).append("\" \"gpuseg manual\"\n.SH NAME\n")
            .append(roff(name)).append(" \\- ").append(roff(what)).append("\n.SH DESCRIPTION\n");
    }

    /** The settings file: every option of {@code run} is a key, and there are keys that are no options. */
    private String settings() {
        final RunSettings keys = new RunSettings();
        final StringBuilder page = format("gpuseg.yaml", 5, "settings of the gpuseg daemon")
            .append(roff("A YAML file that gpuseg-daemon run and gpuseg run read at their start: "
                + "/etc/gpuseg/gpuseg.yaml where gpuseg is installed, or the FILE of --config. Each key is an option "
                + "of gpuseg-daemon run without its dashes, or stands here only. The command line takes precedence. "
                + "A section is joined to "
                + "its keys: queue: {size: 1MiB} is queue-size: 1MiB. Durations and sizes carry a unit (250us, 100ms, "
                + "512KiB). gpuseg-daemon config check names every mistake with its line."))
            .append("\n.SH KEYS\n");
        for (final String key : keys.all()) {
            page.append(".TP\n.B ").append(roff(key)).append('\n').append(roff(keys.descriptionOf(key)))
                .append('\n');
        }
        return page.append(".SH EXAMPLES\n.EX\n").append(roff("policy: edf\nmetrics: 127.0.0.1:9477\nwatchdog-period: "
            + "80ms\nadmission: enforce\ntaskset: /etc/gpuseg/robot.yaml")).append("\n.EE\n.SH SEE ALSO\n"
            + ".BR gpuseg\\-daemon\\-run (1),\n.BR gpuseg\\-daemon\\-config (1)\n").toString();
    }

    /** The task-set file: its keys from the schema, and the example of {@code gpuseg analyze --example}. */
    private String taskSet() {
        final StringBuilder page = format("gpuseg-taskset", 5, "task set of gpuseg analyze, simulate, trace and run")
            .append(roff("A YAML or JSON file that says how long each task computes and uses the GPU at most, and how "
                + "often: gpuseg analyze computes from it whether every deadline holds, gpuseg simulate plays it, "
                + "gpuseg trace check compares a recording with it, and gpuseg run --admission enforce --taskset FILE "
                + "lets nothing else in. gpuseg trace taskset draws one from a recording. A file for "
                + "gpuseg analyze --batch has one JSON task set a line."))
            .append("\n.PP\n").append(roff("Every time carries a unit (ns, us, ms, s); a bare number is refused. "
                + "Priorities are 1..99, 99 is the highest. Cores count from 1, GPUs from 0. Keys that are not listed "
                + "here are refused.")).append('\n');
        for (final TaskSetFormat.Section section : TaskSetFormat.sections()) {
            page.append(".SH KEYS OF ").append(roff(section.title().toUpperCase(Locale.ROOT))).append('\n');
            section.keys().forEach((key, text) -> page.append(".TP\n.B ").append(roff(key)).append('\n')
                .append(roff(text + ".")).append('\n'));
        }
        return page.append(".SH EXAMPLES\n.EX\n").append(roff(TaskSetFormat.example())).append("\n.EE\n.SH SEE ALSO\n"
            + ".BR gpuseg\\-analyze (1),\n.BR gpuseg\\-calibrate (1),\n.BR gpuseg\\-trace\\-taskset (1),\n"
            + ".BR gpuseg\\-run (1)\n").toString();
    }

    /** What the daemon counts. */
    private String counters() {
        final StringBuilder page = format("gpuseg-counters", 7, "what the gpuseg daemon counts")
            .append(roff("gpuseg status shows those that tell of trouble, gpuseg status --json all. For Prometheus "
                + "they are the label event of gpuseg_events_total, and those of the registration socket, whose names "
                + "begin with conductor_ in gpuseg status, of gpuseg_conductor_events_total."))
            .append("\n.SH COUNTERS\n");
        for (final Counter counter : Counter.values()) {
            counter(page, counter.label(), counter.description());
        }
        for (final ConductorCounter counter : ConductorCounter.values()) {
            counter(page, "conductor_" + counter.name().toLowerCase(Locale.ROOT), counter.description());
        }
        return page.append(".SH SEE ALSO\n.BR gpuseg\\-status (1)\n").toString();
    }

    private static void counter(final StringBuilder page, final String label, final String description) {
        page.append(".TP\n.B ").append(roff(label)).append('\n').append(roff(description)).append(".\n");
    }

    private static String brief(final String description) {
        final int end = description.indexOf(". ");
        final String first = (end < 0 ? description : description.substring(0, end)).replaceAll("[.:]$", "");
        return roff(Character.toLowerCase(first.charAt(0)) + first.substring(1));
    }

    private static String synopsis(final CommandSpec command) {
        final StringBuilder line = new StringBuilder(".B ").append(roff(command.qualifiedName(" "))).append('\n');
        if (!command.options().isEmpty()) {
            line.append("[\\fIoptions\\fR]\n");
        }
        for (final PositionalParamSpec parameter : command.positionalParameters()) {
            line.append(parameter.required() ? "" : "[").append("\\fI").append(roff(parameter.paramLabel()))
                .append("\\fR").append(parameter.required() ? "\n" : "]\n");
        }
        if (!command.subcommands().isEmpty()) {
            line.append("[\\fIcommand\\fR]\n");
        }
        return line.toString();
    }

    private static void arguments(final CommandSpec command, final StringBuilder page) {
        page.append(".SH OPTIONS\n");
        for (final PositionalParamSpec parameter : command.positionalParameters()) {
            page.append(".TP\n.I ").append(roff(parameter.paramLabel())).append('\n')
                .append(roff(String.join(" ", parameter.description()))).append('\n');
        }
        for (final OptionSpec option : command.options()) {
            if (!option.hidden()) {
                final List<String> names = new ArrayList<>();
                for (final String name : option.names()) {
                    names.add("\\fB" + roff(shown(option, name)) + "\\fR");
                }
                page.append(".TP\n").append(String.join(", ", names)).append(takesValue(option)
                    ? "=\\fI" + roff(option.paramLabel()) + "\\fR" : "").append('\n')
                    .append(roff(String.join(" ", option.description()))).append('\n');
            }
        }
    }

    private static String shown(final OptionSpec option, final String name) {
        return option.negatable() ? name.replaceFirst("^--", "--[no-]") : name;
    }

    private static boolean takesValue(final OptionSpec option) {
        return option.arity().max() > 0;
    }

    /** Text as roff reads it back: no escapes, no requests, hyphens that can be copied. */
    private static String roff(final String text) {
        final String escaped = text.replace("%n", "\n").replace("%%", "%").replace("\\", "\\e").replace("-", "\\-")
            .replace("`", "\"");
        final StringBuilder lines = new StringBuilder();
        for (final String line : escaped.split("\n")) {
            lines.append(lines.length() == 0 ? "" : "\n")
                .append(line.startsWith(".") || line.startsWith("'") ? "\\&" : "").append(line);
        }
        final StringBuilder ascii = new StringBuilder();
        lines.codePoints().forEach(c -> ascii.append(c < 128 ? Character.toString(c) : String.format("\\[u%04X]", c)));
        return ascii.toString();
    }

    // ---- completion

    private String bash(final CommandLine root) {
        // sourced, so without interpreter; and picocli dates what it generates, but two builds shall not differ
        return AutoComplete.bash("gpuseg", root).replaceFirst("^#!.*\\R", "")
            .replaceAll("(?m)^# generated by .*\\R", "").replaceAll("(?m)^#.*(?i)generated on.*\\R", "");
    }

    private static String zsh() {
        return "#compdef gpuseg\n# zsh completes with the bash file, which knows every command and option.\n"
            + "autoload -Uz bashcompinit && bashcompinit\n"
            + "source /usr/share/bash-completion/completions/gpuseg\n";
    }

    private static String fish(final CommandSpec root) {
        final StringBuilder text = new StringBuilder("# fish completion of gpuseg\ncomplete -c gpuseg -f\n");
        final Set<String> top = new TreeSet<>(root.subcommands().keySet());
        final String none = "not __fish_seen_subcommand_from " + String.join(" ", top);
        for (final CommandSpec sub : children(root)) {
            text.append("complete -c gpuseg -n ").append(quoted(none)).append(" -a ").append(sub.name())
                .append(" -d ").append(quoted(String.join(" ", sub.usageMessage().description()))).append('\n');
            fishOptions(sub, "__fish_seen_subcommand_from " + sub.name(), text);
            for (final CommandSpec below : children(sub)) {
                text.append("complete -c gpuseg -n ").append(quoted("__fish_seen_subcommand_from " + sub.name()))
                    .append(" -a ").append(below.name()).append(" -d ")
                    .append(quoted(String.join(" ", below.usageMessage().description()))).append('\n');
                fishOptions(below, "__fish_seen_subcommand_from " + sub.name()
                    + "; and __fish_seen_subcommand_from " + below.name(), text);
            }
        }
        return text.toString();
    }

    private static void fishOptions(final CommandSpec command, final String condition, final StringBuilder text) {
        for (final OptionSpec option : command.options()) {
            if (option.hidden()) {
                continue;
            }
            final String description = quoted(String.join(" ", option.description()));
            for (final String name : option.names()) {
                text.append("complete -c gpuseg -n ").append(quoted(condition))
                    .append(name.startsWith("--") ? " -l " + name.substring(2) : " -s " + name.substring(1))
                    .append(takesValue(option) ? " -r -F" : "").append(" -d ").append(description).append('\n');
                if (option.negatable() && name.startsWith("--")) {
                    text.append("complete -c gpuseg -n ").append(quoted(condition)).append(" -l no-")
                        .append(name.substring(2)).append(" -d ").append(description).append('\n');
                }
            }
        }
    }

    private static String quoted(final String text) {
        return "'" + text.replace("%n", " ").replace("%%", "%").replace("\\", "\\\\").replace("'", "\\'") + "'";
    }
}
