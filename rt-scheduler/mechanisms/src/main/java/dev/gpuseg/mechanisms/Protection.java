/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import dev.gpuseg.ipc.platform.ProcessStatus;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;

/**
 * What a mechanism must leave alone when it finds processes by itself: display servers, the driver's own services and
 * the programs that the administrator lists. Every mechanism that finds processes asks this one class.
 *
 * <p>A process is recognised by the program that it runs: the file name (at most 15 bytes count, as in
 * /proc/pid/comm), if the file belongs to root or to the daemon's user and no other user may write it. The name in
 * /proc/pid/comm is not used, because a process can choose it.
 *
 * @param names      file names of programs, in addition to {@link #ALWAYS}; the first 15 bytes count
 * @param allEngines whether copy engines are switched too, not only compute and graphics
 */
public record Protection(Set<String> names, boolean allEngines) {
    /** Programs that are always protected: display servers, compositors and the drivers' own services. */
    public static final Set<String> ALWAYS = Set.of(
        // display servers, and compositors of Wayland
        "Xorg", "Xorg.bin", "X", "Xwayland", "gnome-shell", "mutter", "kwin_wayland", "sway", "weston", "Hyprland",
        "cosmic-comp", "labwc", "niri", "gamescope", "wayfire", "river", "cage", "phoc", "gala", "enlightenment",
        // what composes the screen under X, and desktops that draw it
        "kwin_x11", "plasmashell", "cinnamon", "muffin", "marco", "xfwm4", "compiz", "picom",
        // display managers
        "gdm-wayland-ses", "gdm-x-session", "sddm", "sddm-greeter", "sddm-greeter-qt", "lightdm",
        // the drivers' own services
        "nvidia-persiste", "nvidia-smi", "nv-hostengine", "nv-fabricmanage", "nvidia-powerd", "nvargus-daemon");
    /** {@link #ALWAYS} alone; compute and graphics. */
    public static final Protection DEFAULTS = new Protection(Set.of(), false);

    private static final int COMM_CHARS = 15;
    private static final int WRITABLE_BY_OTHERS = 0022;

    /** Copies the names. */
    public Protection {
        names = Set.copyOf(names);
    }

    /**
     * Whether a process runs a protected program. Any thread.
     *
     * @param pid the process
     * @return false also if it has ended, or if the daemon has no permission to examine it
     */
    public boolean covers(final int pid) {
        return covers(Path.of("/proc/" + pid));
    }

    /**
     * The same for a process's directory below /proc, or a copy of one. Any thread.
     *
     * @param process its directory
     * @return as above
     */
    public boolean covers(final Path process) {
        try {
            final Path program = process.resolve("exe");
            final Path path = program.toRealPath();
            if (!isListed(path.getFileName().toString())) {
                return false;
            }
            final int owner = (Integer) Files.getAttribute(program, "unix:uid");
            final int mode = (Integer) Files.getAttribute(program, "unix:mode");
            // the path is that of the process's own mount namespace: it counts if it is the same file in ours
            return Files.isSameFile(path, program) && (owner == 0 || owner == ProcessStatus.effectiveUid())
                && (mode & WRITABLE_BY_OTHERS) == 0;
        } catch (final IOException | RuntimeException e) {
            return false;   // it ended, is a kernel thread, or may not be examined
        }
    }

    private boolean isListed(final String file) {
        final String name = file.length() > COMM_CHARS ? file.substring(0, COMM_CHARS) : file;
        return ALWAYS.contains(name) || names.contains(name);
    }
}
