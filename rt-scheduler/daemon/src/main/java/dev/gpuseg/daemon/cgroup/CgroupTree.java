/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;

/**
 * The unified hierarchy (cgroup v2), as /proc shows it. A process without permissions on the tree cannot choose its
 * group; where a subtree is delegated to a user, that user can move processes within it.
 *
 * <p>Source: cgroups(7). One thread at a time.
 */
public final class CgroupTree {
    /** What the unified hierarchy's line begins with. */
    private static final byte[] ABSOLUTE = "0::/".getBytes(StandardCharsets.ISO_8859_1);
    private static final int USUAL_BYTES = 1024;
    private static final int MOUNT_POINT_FIELD = 4;

    private final Path proc;
    /** Kept from call to call: the daemon asks for every process several times a second. */
    private byte[] text = new byte[USUAL_BYTES];

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
        int length = 0;
        try (FileInputStream in = new FileInputStream(proc + "/" + pid + "/cgroup")) {
            for (int n = in.read(text); n > 0; n = in.read(text, length, text.length - length)) {
                length += n;
                if (length == text.length) {
                    text = Arrays.copyOf(text, 2 * length);
                }
            }
        } catch (final IOException e) {
            return "";
        }
        int end;
        for (int at = 0; at < length; at = end + 1) {
            end = at;
            while (end < length && text[end] != '\n') {
                end++;
            }
            if (Arrays.equals(text, at, Math.min(end, at + ABSOLUTE.length), ABSOLUTE, 0, ABSOLUTE.length)) {
                final int from = at + ABSOLUTE.length - 1;   // the slash belongs to it
                return new String(text, from, end - from, StandardCharsets.ISO_8859_1);
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
