/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.process;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;

/** Settings files of daemons that are started by a program: for settings that are no options of {@code gpuseg run}. */
public final class DaemonSettings {
    private DaemonSettings() {
    }

    /**
     * Writes a settings file that every user can read.
     *
     * @param file  is replaced if it exists
     * @param lines such as {@code warm-up: false}
     * @return the options of {@code gpuseg run} that name it
     */
    public static List<String> write(final Path file, final List<String> lines) {
        try {
            Files.write(file, lines);
            Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-r--r--"));
        } catch (final IOException e) {
            throw new UncheckedIOException(file + " cannot be written: " + e.getMessage(), e);
        }
        return List.of("--config", file.toString());
    }

    /** The same with lines that are known beforehand. */
    public static List<String> write(final Path file, final String... lines) {
        return write(file, List.of(lines));
    }
}
