/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.gpuseg.command.ExitCode;
import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigFile;
import dev.gpuseg.daemon.config.ConfigProblem;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The settings file of the daemon: is it right, and what would the daemon run with. */
@Command(name = "config", mixinStandardHelpOptions = true, modelTransformer = SettingKeys.Help.class,
    description = "Check or show the settings file of `gpuseg run`.")
public final class ConfigCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new CommandLine.ParameterException(spec.commandLine(), "give check or show");
    }

    @Command(name = "check", mixinStandardHelpOptions = true,
        description = "Read a settings file as `gpuseg run` would and report every mistake in it. Start nothing.",
        exitCodeListHeading = "%nExit status:%n", exitCodeList = {"0:the file is correct", "2:it is not"})
    int check(@Parameters(arity = "0..1", paramLabel = "FILE",
        description = "Settings file (default: /etc/gpuseg/gpuseg.yaml where gpuseg is installed).") final Path named) {
        final RunSettings keys = new RunSettings();
        final Path file = file(named);
        final ConfigFile read = ConfigFile.read(file, keys);
        final List<ConfigProblem> problems = keys.check(read);
        problems.forEach(problem -> spec.commandLine().getErr().println(problem));
        spec.commandLine().getErr().flush();
        if (!problems.isEmpty()) {
            return ExitCode.USAGE;
        }
        out().println(file + ": good, " + read.entries().size() + " settings");
        out().flush();
        return ExitCode.OK;
    }

    @Command(name = "show", mixinStandardHelpOptions = true,
        description = "Show every setting, its value and its origin: the file or the default. "
            + "An option on the command line of `gpuseg run` takes precedence over both.")
    int show(@Parameters(arity = "0..1", paramLabel = "FILE",
        description = "Settings file (default: /etc/gpuseg/gpuseg.yaml where gpuseg is installed).") final Path named,
        @Option(names = "--json", description = "Print JSON.") final boolean json) {
        final RunSettings keys = new RunSettings();
        final Path file = named == null ? RunSettings.defaultFile() : named;
        final Map<String, ConfigEntry> set = new LinkedHashMap<>();
        if (file != null) {
            final ConfigFile read = ConfigFile.read(file, keys);
            final List<ConfigProblem> problems = keys.check(read);
            if (!problems.isEmpty()) {
                problems.forEach(problem -> spec.commandLine().getErr().println(problem));
                return ExitCode.USAGE;
            }
            read.entries().forEach(entry -> set.put(entry.key(), entry));
        }
        final ObjectNode root = JsonNodeFactory.instance.objectNode();
        for (final String key : keys.all()) {
            final ConfigEntry entry = set.get(key);
            final String value = entry == null ? keys.defaultOf(key) : entry.text();
            final String origin = entry == null ? "default" : file + ":" + entry.line();
            if (json) {
                root.putObject(key).put("value", value).put("origin", origin);
            } else {
                out().printf("%-24s %-24s %s%n", key, value == null ? "-" : value, origin);
            }
        }
        if (json) {
            out().println(root);
        }
        out().flush();
        return ExitCode.OK;
    }

    private Path file(final Path named) {
        final Path file = named == null ? RunSettings.defaultFile() : named;
        if (file == null) {
            throw new CommandLine.ParameterException(spec.commandLine(),
                "no settings file is installed here; name one: gpuseg config check FILE");
        }
        return file;
    }

    private PrintWriter out() {
        return spec.commandLine().getOut();
    }
}
