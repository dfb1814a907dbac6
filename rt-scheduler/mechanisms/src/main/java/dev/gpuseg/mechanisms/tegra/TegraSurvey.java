/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.file.Files;
import java.nio.file.Path;

/** What stands in the way of this mechanism on this machine, without touching any process but this one. */
public final class TegraSurvey {
    /**
     * What was found.
     *
     * @param good whether the daemon would start with it
     * @param text why, or why not and what to do
     */
    public record Finding(boolean good, String text) {
    }

    private static final Path PATCHED = Path.of("/dev/nvgpu/igpu0/ctrl");

    private TegraSurvey() {
    }

    /**
     * The first thing that stands in the way, or what works.
     *
     * @return one line, which says that this was never run on a board
     */
    public static Finding verdict() {
        final int fd = TegraCalls.open(TegraDevice.PATH);
        if (fd < 0) {
            return new Finding(false, TegraDevice.PATH + " cannot be opened (errno " + -fd
                + "); load nvgpu on a Tegra board and run as root");
        }
        SystemCalls.closeOnce(fd);
        final int pidfd = SystemCalls.pidfdOpen((int) ProcessHandle.current().pid());
        final int copy = pidfd < 0 ? pidfd : SystemCalls.pidfdGetfd(pidfd, pidfd);
        if (pidfd >= 0) {
            SystemCalls.closeOnce(pidfd);
        }
        if (copy < 0) {
            return new Finding(false, "descriptors of other processes cannot be duplicated: errno " + -copy
                + "; a kernel of 5.6 or later is needed, and a container must allow pidfd_getfd");
        }
        SystemCalls.closeOnce(copy);
        return new Finding(true, TegraDevice.PATH
            + " can be opened; TSGs are taken off the runlist with the stock driver"
            + (Files.exists(PATCHED) ? ", no ioctl of a patch is used" : "") + "; not run on a board");
    }
}
