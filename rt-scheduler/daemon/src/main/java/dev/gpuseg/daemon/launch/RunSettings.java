/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.io.YamlWords;
import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.config.ConfigKeys;
import dev.gpuseg.daemon.config.ConfigProblem;
import dev.gpuseg.daemon.process.StartUpException;
import dev.gpuseg.ipc.RuntimeDirectory;
import dev.gpuseg.mechanisms.MechanismCatalog;
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
import java.util.function.Function;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.TypeConversionException;

/**
 * The keys of the settings file: the options of {@code gpuseg run}, and the {@link SettingKeys}. There is no second
 * list: whatever option the command has is a key, and values are converted and checked by the command's own code. An
 * option on the command line wins.
 */
public final class RunSettings implements ConfigKeys {
    /** The option that names the file; it cannot be a key of it. */
    static final String FILE_OPTION = "--config";

    private static final String DEFAULT_FILE_PROPERTY = "gpuseg.config";
    /** picocli's words for a field without initial value, an empty list and an empty mapping. */
    private static final List<String> NO_VALUE = List.of("null", "[]", "{}");

    /** A key and the model that converts its value. */
    private record Key(CommandSpec from, OptionSpec option) {
    }

    private final SortedMap<String, Key> all = new TreeMap<>();
    private final Function<RuntimeDirectory, List<MechanismCatalog.Surveyed>> survey;

    /** The keys as they stand. */
    public RunSettings() {
        this(MechanismCatalog::survey);
    }

    RunSettings(final Function<RuntimeDirectory, List<MechanismCatalog.Surveyed>> survey) {
        this(List.of(new CommandLine(new RunCommand()).getCommandSpec(), SettingKeys.defaults().spec()), survey);
    }

    public RunSettings(final CommandSpec run) {
        this(List.of(run), MechanismCatalog::survey);
    }

    private RunSettings(final List<CommandSpec> models,
        final Function<RuntimeDirectory, List<MechanismCatalog.Surveyed>> survey) {
        this.survey = survey;
        for (final CommandSpec model : models) {
            CommandLines.readingNumbers(model.commandLine());
            for (final OptionSpec option : model.options()) {
                if (!option.usageHelp() && !option.versionHelp() && !option.longestName().equals(FILE_OPTION)) {
                    all.put(option.longestName().replaceFirst("^-+", ""), new Key(model, option));
                }
            }
        }
    }

    /** The file that an installed daemon reads when it is told none: null if there is none, as in a checkout. */
    public static Path defaultFile() {
        final String path = System.getProperty(DEFAULT_FILE_PROPERTY, "");
        return path.isEmpty() || !Files.exists(Path.of(path)) ? null : Path.of(path);
    }

    @Override
    public SortedSet<String> all() {
        return new TreeSet<>(all.keySet());
    }

    @Override
    public boolean takesMapping(final String key) {
        return all.get(key).option().typeInfo().isMap();
    }

    @Override
    public boolean takesList(final String key) {
        return all.get(key).option().isMultiValue();
    }

    /**
     * What a key means.
     *
     * @param key one of {@link #all}
     * @return sentences
     */
    public String descriptionOf(final String key) {
        return String.join(" ", all.get(key).option().description());
    }

    /**
     * The value of a key that is not set.
     *
     * @param key one of {@link #all}
     * @return null where it depends on other settings or on the machine: the help of `run` says how
     */
    public String defaultOf(final String key) {
        final OptionSpec option = all.get(key).option();
        final String value = option.defaultValueString();
        if (value != null && !NO_VALUE.contains(value)) {
            return value;
        }
        // a Boolean that is not set depends on other settings; its text says how
        return option.arity().max() == 0 && option.type() == boolean.class ? "false" : null;
    }

    /**
     * Checks a file as `run` would, and looks at this machine as it would, too.
     *
     * @param file what was read
     * @return all mistakes, in the order of the lines
     */
    public List<ConfigProblem> check(final ConfigFile file) {
        final RunCommand run = new RunCommand(survey);
        final CommandLine line = new CommandLine(run);
        line.parseArgs();
        final AppliedSettings applied = run.apply(this, file);
        final List<ConfigProblem> problems = new ArrayList<>(applied.problems());
        for (final StartUpException refused : run.check()) {
            problems.add(applied.place(refused)
                .orElseGet(() -> new ConfigProblem(file.file(), 0, refused.getMessage())));
        }
        problems.sort(Comparator.comparingInt(ConfigProblem::line));
        return problems;
    }

    /**
     * Gives a command that has been parsed the values of a file, where its command line says nothing.
     *
     * @param models the options of the command and its further keys, which are to be set
     * @param file   what was read
     * @return which values hold now, and which are none
     */
    AppliedSettings apply(final List<CommandSpec> models, final ConfigFile file) {
        final Map<String, ConfigEntry> used = new LinkedHashMap<>();
        final List<ConfigProblem> problems = new ArrayList<>(file.problems());
        for (final ConfigEntry entry : file.entries()) {
            final String name = all.get(entry.key()).option().longestName();
            final CommandSpec model = models.stream().filter(m -> m.findOption(name) != null).findFirst().orElseThrow();
            final OptionSpec own = model.findOption(name);
            try {
                final Object value = convert(entry);
                if (!model.commandLine().getParseResult().hasMatchedOption(own)) {
                    own.setValue(value);
                    used.put(name, entry);
                }
            } catch (final ParameterException e) {
                final String reason = e.getCause() instanceof TypeConversionException ours ? ours.getMessage()
                    : e.getMessage();
                problems.add(AppliedSettings.problem(file.file(), entry, reason));
            }
        }
        return new AppliedSettings(file.file(), used, problems);
    }

    /** The value as the option itself takes it. */
    private Object convert(final ConfigEntry entry) {
        final Key key = all.get(entry.key());
        final CommandLine converter = key.from().commandLine();
        final OptionSpec option = key.option();
        final List<String> words = new ArrayList<>();
        if (option.arity().max() == 0) {
            return switch (YamlWords.among(entry.text(), List.of("on", "off"))) {
                case "on" -> true;
                case "off" -> false;
                default -> throw new ParameterException(converter, "is neither true nor false");
            };
        }
        final List<String> choices = List.of(option.paramLabel().split("\\|"));   // as the help says them
        for (final String value : entry.values()) {
            words.add(option.longestName() + "=" + YamlWords.among(value, choices));
        }
        converter.parseArgs(words.toArray(new String[0]));
        return converter.getCommandSpec().findOption(option.longestName()).getValue();
    }
}
