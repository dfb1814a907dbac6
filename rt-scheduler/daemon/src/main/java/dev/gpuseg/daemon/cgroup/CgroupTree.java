/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.cgroup;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.ipc.platform.ProcFile;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * The unified hierarchy (cgroup v2), as /proc shows it. A process without permissions on the tree cannot choose its
 * group; where a subtree is delegated to a user, that user can move processes within it.
 *
 * <p>Source: cgroups(7). One thread at a time.
 */
public final class CgroupTree {
    /** What the unified hierarchy's line begins with. */
    private static final String ABSOLUTE = "0::/";
    /** More than the kernel tells: a line for each hierarchy. */
    private static final int TEXT_MAX = 1 << 20;
    private static final int MOUNT_POINT_FIELD = 4;

    private final Path proc;
    /** Kept from call to call: the daemon asks for every process several times a second. */
    private final ProcFile file;

    /** A tree seen through a process file system, usually {@code /proc}. */
    public CgroupTree(final Path proc) {
        this.proc = proc;
        file = new ProcFile(proc.toString(), TEXT_MAX);
    }

    /**
     * The group of a process.
     *
     * @param pid the process
     * @return its path below the root of the hierarchy, beginning with a slash; empty if the process is gone or the
     *     kernel has no unified hierarchy
     */
    public String pathOf(final int pid) {
        final int length = file.read(pid, "cgroup");
        final ByteBuffer text = file.content();
        int end;
        for (int at = 0; at < length; at = end + 1) {
            end = at;
            while (end < length && text.get(end) != '\n') {
                end++;
            }
            if (end - at >= ABSOLUTE.length() && begins(text, at)) {
                final byte[] path = new byte[end - at - ABSOLUTE.length() + 1];   // with the slash
                text.get(end - path.length, path);
                return new String(path, StandardCharsets.ISO_8859_1);
            }
        }
        return "";
    }

    private static boolean begins(final ByteBuffer text, final int at) {
        boolean same = true;
        for (int i = 0; same && i < ABSOLUTE.length(); i++) {
            same = text.get(at + i) == ABSOLUTE.charAt(i);
        }
        return same;
    }

    /** Where the unified hierarchy is mounted: its directory, or null if it is not. */
    public Path mountPoint() {
        try {
            for (final String line : BoundedFile.lines(proc.resolve("self/mountinfo"), StandardCharsets.UTF_8)) {
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
