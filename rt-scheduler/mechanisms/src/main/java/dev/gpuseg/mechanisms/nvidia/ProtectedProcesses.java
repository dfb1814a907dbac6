/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;

/**
 * Processes that are never touched: the display, what administers the driver, and what the administrator lists. They
 * are told by the program that they run: its file name (at most 15 bytes count, as in /proc/pid/comm), if the file
 * belongs to root or to the daemon's user and nobody else may write it. A process can give itself any name in
 * /proc/pid/comm, so that name counts for nothing here.
 */
public final class ProtectedProcesses {
    /** Display servers, compositors and the driver's own services. */
    public static final Set<String> DEFAULTS = Set.of("Xorg", "X", "Xwayland", "gnome-shell", "kwin_wayland",
        "kwin_x11", "mutter", "sway", "weston", "Hyprland", "plasmashell", "gdm-wayland-ses", "gdm-x-session", "sddm",
        "lightdm", "nvidia-persiste", "nvidia-smi", "nv-hostengine", "nv-fabricmanage", "nvidia-powerd");

    private static final int COMM_CHARS = 15;
    private static final int WRITABLE_BY_OTHERS = 0022;

    private final Set<String> names;

    /**
     * With these names alone.
     *
     * @param names file names of programs, at most 15 bytes each
     */
    public ProtectedProcesses(final Set<String> names) {
        this.names = Set.copyOf(names);
    }

    /**
     * Whether a process runs a protected program.
     *
     * @param pid the process
     * @return false also if it is gone, or if the daemon may not look at it
     */
    public boolean isProtected(final int pid) {
        try {
            final Path program = Path.of("/proc/" + pid + "/exe");
            final Path path = program.toRealPath();
            final String file = path.getFileName().toString();
            if (!names.contains(file.length() > COMM_CHARS ? file.substring(0, COMM_CHARS) : file)) {
                return false;
            }
            final int owner = (Integer) Files.getAttribute(program, "unix:uid");
            final int mode = (Integer) Files.getAttribute(program, "unix:mode");
            // the path is that of the process's own mount namespace: it counts if it is the same file in ours
            return Files.isSameFile(path, program) && (owner == 0 || owner == ProcessStatus.effectiveUid())
                && (mode & WRITABLE_BY_OTHERS) == 0;
        } catch (final IOException | RuntimeException e) {
            return false;   // gone, a kernel thread, or not ours to look at
        }
    }

    /**
     * File name of the program that a process runs.
     *
     * @param pid the process
     * @return without its directory; empty if it is gone, or if the daemon may not look at it
     */
    static String programOf(final int pid) {
        try {
            return Files.readSymbolicLink(Path.of("/proc/" + pid + "/exe")).getFileName().toString();
        } catch (final IOException | RuntimeException e) {
            return "";
        }
    }

    /**
     * Name of a process as the kernel keeps it.
     *
     * @param pid the process
     * @return from /proc/pid/comm, empty if it is gone
     */
    public static String nameOf(final int pid) {
        try {
            return Files.readString(Path.of("/proc/" + pid + "/comm"), StandardCharsets.ISO_8859_1).strip();
        } catch (final IOException e) {
            return "";
        }
    }
}
