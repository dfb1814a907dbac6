/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.mechanism.nvidia;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;

/**
 * Processes that are never touched: the display, what administers the driver, and what the user lists. They are told by
 * the name that the kernel keeps (/proc/pid/comm, at most 15 bytes).
 */
final class ProtectedProcesses {
    /** Display servers, compositors and the driver's own services. */
    static final Set<String> DEFAULTS = Set.of("Xorg", "X", "Xwayland", "gnome-shell", "kwin_wayland", "kwin_x11",
        "mutter", "sway", "weston", "Hyprland", "plasmashell", "gdm-wayland-ses", "gdm-x-session", "sddm", "lightdm",
        "nvidia-persiste", "nvidia-smi", "nv-hostengine", "nv-fabricmanage", "nvidia-powerd");

    private final Set<String> names;

    ProtectedProcesses(final Set<String> names) {
        this.names = Set.copyOf(names);
    }

    boolean contains(final String name) {
        return names.contains(name);
    }

    /** Name of a process as the kernel keeps it, empty if it is gone. */
    static String nameOf(final int pid) {
        try {
            return Files.readString(Path.of("/proc/" + pid + "/comm"), StandardCharsets.ISO_8859_1).strip();
        } catch (final IOException e) {
            return "";
        }
    }
}
