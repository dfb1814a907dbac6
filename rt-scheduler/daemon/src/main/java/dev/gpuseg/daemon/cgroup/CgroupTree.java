/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The unified hierarchy (cgroup v2), as /proc shows it. A process without permissions on the tree cannot choose its
 * group; where a subtree is delegated to a user, that user can move processes within it.
 *
 * <p>Source: cgroups(7). Stateless.
 */
public final class CgroupTree {
    private static final String UNIFIED = "0::";
    private static final int MOUNT_POINT_FIELD = 4;

    private final Path proc;

    /**
     * A tree seen through a process file system.
     *
     * @param proc usually /proc
     */
    public CgroupTree(final Path proc) {
        this.proc = proc;
    }

    /**
     * The group of a process.
     *
     * @param pid the process
     * @return its path below the root of the hierarchy, beginning with a slash; empty if the process is gone or the
     *     kernel has no unified hierarchy
     */
    public String pathOf(final int pid) {
        final String text;
        try {
            text = Files.readString(proc.resolve(Integer.toString(pid)).resolve("cgroup"),
                StandardCharsets.ISO_8859_1);
        } catch (final IOException e) {
            return "";
        }
        for (final String line : text.split("\n")) {
            if (line.startsWith(UNIFIED + "/")) {
                return line.substring(UNIFIED.length());
            }
        }
        return "";
    }

    /**
     * Where the unified hierarchy is mounted.
     *
     * @return its directory, or null if it is not
     */
    public Path mountPoint() {
        try {
            for (final String line : Files.readAllLines(proc.resolve("self/mountinfo"))) {
                final int separator = line.indexOf(" - ");
                if (separator > 0 && line.startsWith("cgroup2 ", separator + 3)) {
                    return Path.of(line.split(" ")[MOUNT_POINT_FIELD]);
                }
            }
            return null;
        } catch (final IOException e) {
            return null;
        }
    }
}
