/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.agent;

import java.nio.file.Files;
import java.nio.file.Path;

/** Where the C programs of this build are. */
public final class NativePrograms {
    private static final String ROOT_PROPERTY = "gpuseg.root";

    private NativePrograms() {
    }

    /**
     * A program of {@code rt-scheduler/native}.
     *
     * @param name for instance "gpuseg-watchdog"
     * @return its path
     * @throws IllegalStateException if it is not built
     */
    public static Path named(final String name) {
        final String root = System.getProperty(ROOT_PROPERTY, "");
        final Path path = Path.of(root.isEmpty() ? "." : root, "rt-scheduler", "native", "build", name)
            .toAbsolutePath().normalize();
        if (!Files.isExecutable(path)) {
            throw new IllegalStateException(name + " is not at " + path + "; build it with "
                + "make -C rt-scheduler/native, and start through ./gpuseg or with -D" + ROOT_PROPERTY + "=CHECKOUT");
        }
        return path;
    }
}
