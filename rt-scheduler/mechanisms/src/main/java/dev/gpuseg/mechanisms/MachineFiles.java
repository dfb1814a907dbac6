/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import java.nio.file.Path;

/** Where surveys look for the files by which drivers describe a machine. Any thread. */
public final class MachineFiles {
    /** Property: a directory that stands for {@code /}, with the files of another machine, for tests. */
    public static final String ROOT_PROPERTY = "gpuseg.machine";

    private MachineFiles() {
    }

    /** {@code /}, or what stands for it. */
    public static Path root() {
        return Path.of(System.getProperty(ROOT_PROPERTY, "/"));
    }

    /**
     * One file.
     *
     * @param path absolute, as on the machine
     * @return where it lies
     */
    public static Path at(final String path) {
        return root().resolve(path.substring(1));
    }

    /** The kernel's version without what its builder added, as {@code gpuseg selftest} writes it. */
    public static String kernelVersion() {
        return System.getProperty("os.version").replaceFirst("[^0-9.].*", "");
    }
}
