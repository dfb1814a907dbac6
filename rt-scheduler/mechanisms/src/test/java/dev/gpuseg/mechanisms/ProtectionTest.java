/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.gpuseg.ipc.platform.FileAccess;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(30)
class ProtectionTest {
    private final Protection protection = new Protection(Set.of("camera", "fifteen-letters"), false);

    @TempDir
    private Path directory;

    private boolean isProtected(final String file, final int mode, final String argumentZero) throws Exception {
        final Path program = Files.copy(Path.of("/bin/sleep"), directory.resolve(file));
        FileAccess.chmod(program, mode);
        final Process process = new ProcessBuilder("bash", "-c", "exec -a \"$1\" \"$0\" 20", program.toString(),
            argumentZero).start();
        try {
            while (!Path.of("/proc/" + process.pid() + "/exe").toRealPath().equals(program.toRealPath())) {
                Thread.sleep(5);   // bash has not become the program yet
            }
            return protection.covers((int) process.pid());
        } finally {
            process.destroyForcibly().waitFor();
            Files.delete(program);
        }
    }

    @Test
    void shouldGoByTheFileOfTheProgramAndNotByWhatItCallsItself() throws Exception {
        assertTrue(isProtected("Xorg", 0755, "whatever"), "always protected");
        assertTrue(isProtected("camera", 0755, "whatever"), "listed");
        assertFalse(isProtected("evil", 0755, "Xorg"));
        assertTrue(isProtected("fifteen-letters-and-more", 0755, "x"), "15 bytes count");
    }

    @ParameterizedTest
    @ValueSource(strings = {"Xwayland", "gnome-shell", "kwin_wayland", "mutter", "sway", "weston", "Hyprland",
        "cosmic-comp", "labwc", "niri", "gamescope", "wayfire", "Xorg.bin", "cinnamon", "xfwm4", "picom",
        "sddm-greeter-qt6"})
    void shouldProtectWhatDrawsTheScreenToday(final String program) throws Exception {
        assertTrue(isProtected(program, 0755, program));
    }

    @Test
    void shouldNotTrustAFileThatOthersMayWrite() throws Exception {
        assertFalse(isProtected("Xorg", 0757, "Xorg"));
        assertFalse(isProtected("Xorg", 0775, "Xorg"));
    }

    /** It sees a program of its own under the path of a protected one. */
    @Test
    void shouldNotTrustAFileThatOnlyANamespaceOfItsOwnHasThere() throws Exception {
        final Path program = Files.copy(Path.of("/bin/sleep"), directory.resolve("Xorg"));
        final Path other = Files.copy(Path.of("/bin/sleep"), directory.resolve("evil"));
        FileAccess.chmod(program, 0755);
        FileAccess.chmod(other, 0755);
        final Process process = new ProcessBuilder("unshare", "--mount", "sh", "-c",
            "mount --bind \"$0\" \"$1\" && exec \"$1\" 20", other.toString(), program.toString())
            .redirectErrorStream(true).start();
        try {
            while (process.isAlive() && !runs(process, program)) {
                Thread.sleep(5);   // the shell has not become the program yet
            }
            assumeTrue(process.isAlive(), () -> "no permission for a mount namespace: " + said(process));
            assertFalse(protection.covers((int) process.pid()));
        } finally {
            process.destroyForcibly().waitFor();
        }
    }

    private static boolean runs(final Process process, final Path program) {
        try {
            return Path.of("/proc/" + process.pid() + "/exe").toRealPath().equals(program.toRealPath());
        } catch (final IOException e) {
            return false;   // it has ended
        }
    }

    private static String said(final Process process) {
        try {
            return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
        } catch (final IOException e) {
            return e.toString();
        }
    }

    @Test
    void shouldNotTrustAFileOfAnotherUser() throws Exception {
        org.junit.jupiter.api.Assumptions.assumeTrue(
            dev.gpuseg.ipc.platform.ProcessStatus.effectiveUid() == 0, "only root can give a file away");
        final Path program = Files.copy(Path.of("/bin/sleep"), directory.resolve("Xorg"));
        FileAccess.chmod(program, 0755);
        FileAccess.chown(program, 65534, -1);
        final Process process = new ProcessBuilder(program.toString(), "20").start();
        try {
            assertFalse(protection.covers((int) process.pid()));
        } finally {
            process.destroyForcibly().waitFor();
        }
        assertFalse(protection.covers(Integer.MAX_VALUE - 3), "no such process");
    }
}
