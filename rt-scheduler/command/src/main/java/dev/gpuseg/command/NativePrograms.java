/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.command;

import java.nio.file.Files;
import java.nio.file.Path;

/** Where the C programs of this build are. */
public final class NativePrograms {
    private static final String ROOT_PROPERTY = "gpuseg.root";
    private static final String INSTALLED_PROPERTY = "gpuseg.programs";   // their directory, set by an installed gpuseg

    private NativePrograms() {
    }

    /**
     * A program of {@code rt-scheduler/native}.
     *
     * @param name for instance "gpuseg-watchdog"
     * @return its path
     * @throws IllegalStateException if it is not there or not installed
     */
    public static Path named(final String name) {
        return of("rt-scheduler/native", name);
    }

    /**
     * A program of the client library.
     *
     * @param name for instance "gpuseg-exec"
     * @return its path
     * @throws IllegalStateException if it is not there or not installed
     */
    public static Path ofClientLibrary(final String name) {
        return of("segment-api", name);
    }

    private static Path of(final String part, final String name) {
        final String installed = System.getProperty(INSTALLED_PROPERTY, "");
        if (!installed.isEmpty()) {
            final Path path = Path.of(installed, name);
            if (!Files.isExecutable(path)) {
                throw new IllegalStateException(name + " is not at " + path + "; reinstall the package gpuseg");
            }
            return path;
        }
        final String root = System.getProperty(ROOT_PROPERTY, "");
        final Path path = Path.of(root.isEmpty() ? "." : root, part, "build", name)
            .toAbsolutePath().normalize();
        if (!Files.isExecutable(path)) {
            throw new IllegalStateException(name + " is not at " + path + "; build it with "
                + "make -C " + part + ", and start through ./gpuseg or with -D" + ROOT_PROPERTY + "=CHECKOUT");
        }
        return path;
    }
}
