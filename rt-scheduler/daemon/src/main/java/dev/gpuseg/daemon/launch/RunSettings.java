/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.config.ConfigKeys;
import dev.gpuseg.daemon.config.ConfigProblem;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;

/**
 * The options of {@code gpuseg run} as keys of the settings file. There is no second list: whatever option the command
 * has is a key, and values are converted and checked by the command's own code. An option on the command line wins.
 */
public final class RunSettings implements ConfigKeys {
    /** The option that names the file; it cannot be a key of it. */
    static final String FILE_OPTION = "--config";

    private static final String DEFAULT_FILE_PROPERTY = "gpuseg.config";
    private static final Pattern PICOCLI_PREFIX =
        Pattern.compile("(?s)^Invalid value for option '[^']*'(?: \\([^)]*\\))?: (?:cannot convert )?");
    /** picocli's words for a field without initial value, an empty list and an empty mapping. */
    private static final List<String> NO_VALUE = List.of("null", "[]", "{}");
    private static final Pattern OPTION_NAME = Pattern.compile("--([a-z][a-z0-9-]*)");

    private final SortedMap<String, OptionSpec> options = new TreeMap<>();

    /** The options of {@code gpuseg run} as it stands. */
    public RunSettings() {
        this(new CommandLine(new RunCommand()).getCommandSpec());
    }

    public RunSettings(final CommandSpec run) {
        for (final OptionSpec option : run.options()) {
            if (!option.usageHelp() && !option.versionHelp() && !option.longestName().equals(FILE_OPTION)) {
                options.put(option.longestName().replaceFirst("^-+", ""), option);
            }
        }
    }

    /**
     * The file that an installed daemon reads when it is told none.
     *
     * @return null if there is none, as in a checkout
     */
    public static Path defaultFile() {
        final String path = System.getProperty(DEFAULT_FILE_PROPERTY, "");
        return path.isEmpty() || !Files.exists(Path.of(path)) ? null : Path.of(path);
    }

    @Override
    public SortedSet<String> all() {
        return new TreeSet<>(options.keySet());
    }

    @Override
    public boolean takesMapping(final String key) {
        return options.get(key).typeInfo().isMap();
    }

    @Override
    public boolean takesList(final String key) {
        return options.get(key).isMultiValue();
    }

    /**
     * The value of a key that is not set.
     *
     * @param key one of {@link #all}
     * @return null where it depends on other settings or on the machine: the help of `run` says how
     */
    public String defaultOf(final String key) {
        final OptionSpec option = options.get(key);
        final String value = option.defaultValueString();
        if (value != null && !NO_VALUE.contains(value)) {
            return value;
        }
        // a Boolean that is not set depends on other settings; its text says how
        return option.arity().max() == 0 && option.type() == boolean.class ? "false" : null;
    }

    /**
     * Checks a file as `run` would.
     *
     * @param file what was read
     * @return all mistakes, in the order of the lines
     */
    public List<ConfigProblem> check(final ConfigFile file) {
        final List<ConfigProblem> problems = new ArrayList<>(file.problems());
        final Map<String, ConfigEntry> good = new LinkedHashMap<>();
        for (final ConfigEntry entry : file.entries()) {
            try {
                new CommandLine(new RunCommand()).setCaseInsensitiveEnumValuesAllowed(true)
                    .parseArgs(arguments(entry).toArray(new String[0]));
                good.put(entry.key(), entry);
            } catch (final ParameterException e) {
                problems.add(problem(file, entry, e.getMessage()));
            }
        }
        checkTogether(file, good, problems);
        problems.sort(Comparator.comparingInt(ConfigProblem::line));
        return problems;
    }

    /** The command's own checks stop at the first fault; so the setting it names is left out and they run again. */
    private void checkTogether(final ConfigFile file, final Map<String, ConfigEntry> good,
        final List<ConfigProblem> problems) {
        for (int round = good.size(); round >= 0; round--) {
            final String fault = faultOf(good);
            if (fault == null) {
                return;
            }
            final ConfigEntry named = namedIn(fault, good);
            problems.add(named == null ? new ConfigProblem(file.file(), 0, oneLine(fault))
                : problem(file, named, fault));
            if (named == null) {
                return;
            }
            good.remove(named.key());
        }
    }

    private String faultOf(final Map<String, ConfigEntry> settings) {
        final RunCommand run = new RunCommand();
        try {
            parse(run, settings.values());
            run.validate();
            return null;
        } catch (final ParameterException | IllegalArgumentException e) {
            return e.getMessage();
        }
    }

    private static ConfigEntry namedIn(final String fault, final Map<String, ConfigEntry> settings) {
        final Matcher names = OPTION_NAME.matcher(fault);
        while (names.find()) {
            final ConfigEntry entry = settings.get(names.group(1));
            if (entry != null) {
                return entry;
            }
        }
        for (final ConfigEntry entry : settings.values()) {   // some name no option: policy "best" ..., /a/file: ...
            if (fault.startsWith(entry.key() + " ") || fault.startsWith(entry.text() + ":")) {
                return entry;
            }
        }
        return null;
    }

    private static String oneLine(final String text) {
        return text.replaceAll("\\s*\\R\\s*", " ");
    }

    private static ConfigProblem problem(final ConfigFile file, final ConfigEntry entry, final String message) {
        return new ConfigProblem(file.file(), entry.line(), entry.key() + ": '" + entry.text() + "': "
            + oneLine(PICOCLI_PREFIX.matcher(message).replaceFirst("")));
    }

    private CommandLine parse(final RunCommand run, final Iterable<ConfigEntry> entries) {
        final List<String> all = new ArrayList<>();
        for (final ConfigEntry entry : entries) {
            all.addAll(arguments(entry));
        }
        final CommandLine line = new CommandLine(run).setCaseInsensitiveEnumValuesAllowed(true);
        line.parseArgs(all.toArray(new String[0]));
        return line;
    }

    /** What would be typed for a setting. */
    private List<String> arguments(final ConfigEntry entry) {
        final OptionSpec option = options.get(entry.key());
        final String name = option.longestName();
        final List<String> words = new ArrayList<>();
        if (option.arity().max() == 0 && (option.type() == boolean.class || option.type() == Boolean.class)) {
            final String value = entry.text();
            if (!value.equals("true") && !value.equals("false")) {
                throw new ParameterException(new CommandLine(option.command()), "is neither true nor false");
            }
            if (value.equals("true")) {
                words.add(name);
            } else if (option.negatable()) {
                words.add("--no-" + entry.key());
            }
            return words;
        }
        for (final String value : entry.values()) {
            words.add(name + "=" + value);
        }
        return words;
    }

    /**
     * Gives a command that has been parsed the values of a file, where its command line says nothing.
     *
     * @param run  the spec of the command whose options are to be set
     * @param file a file without mistakes
     */
    void apply(final CommandSpec run, final ConfigFile file) {
        final CommandSpec read = parse(new RunCommand(), file.entries()).getCommandSpec();
        for (final ConfigEntry entry : file.entries()) {
            final OptionSpec own = run.findOption("--" + entry.key());
            if (!run.commandLine().getParseResult().hasMatchedOption(own)) {
                own.setValue(read.findOption("--" + entry.key()).getValue());
            }
        }
    }
}
