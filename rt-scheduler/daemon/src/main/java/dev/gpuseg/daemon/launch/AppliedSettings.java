/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.daemon.config.ConfigEntry;
import dev.gpuseg.daemon.config.ConfigProblem;
import dev.gpuseg.daemon.process.StartUpException;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * What a settings file had to say to a command: its values are those of the command's options now, except where the
 * command line gave them.
 *
 * @param file     which, null if none was read
 * @param used     the entries that hold, by the name of their option
 * @param problems mistakes of the file and of single values
 */
record AppliedSettings(Path file, Map<String, ConfigEntry> used, List<ConfigProblem> problems) {
    /** There is no settings file. */
    static final AppliedSettings NONE = new AppliedSettings(null, Map.of(), List.of());

    /** How a mistake in a value is said: thing, value, reason. */
    static ConfigProblem problem(final Path file, final ConfigEntry entry, final String reason) {
        return new ConfigProblem(file, entry.line(), entry.key() + ": '" + entry.text() + "': "
            + reason.replaceAll("\\s*\\R\\s*", " "));
    }

    /** Where in the file a refused option stands; empty if the option did not get its value from the file. */
    Optional<ConfigProblem> place(final StartUpException refused) {
        return Optional.ofNullable(used.get(refused.option()))
            .map(entry -> problem(file, entry, refused.getMessage()));
    }
}
