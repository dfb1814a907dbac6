/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.file.Files;
import java.nio.file.Path;

/** What stands in the way of this mechanism on this machine, without touching any process but this one. */
public final class TegraSurvey {
    private static final Path PATCHED = Path.of("/dev/nvgpu/igpu0/ctrl");

    private TegraSurvey() {
    }

    /**
     * The first thing that stands in the way, or what works.
     *
     * @return usable, at level 3, only if nothing does
     */
    public static MechanismVerdict verdict() {
        final int fd = TegraCalls.open(TegraDevice.PATH);
        if (fd < 0) {
            return refused(TegraDevice.PATH + " cannot be opened (errno " + -fd
                + "); load nvgpu on a Tegra board and run as root");
        }
        SystemCalls.closeOnce(fd);
        final int pidfd = SystemCalls.pidfdOpen((int) ProcessHandle.current().pid());
        final int copy = pidfd < 0 ? pidfd : SystemCalls.pidfdGetfd(pidfd, pidfd);
        if (pidfd >= 0) {
            SystemCalls.closeOnce(pidfd);
        }
        if (copy < 0) {
            return refused("descriptors of other processes cannot be duplicated: errno " + -copy
                + "; a kernel of 5.6 or later is needed, and a container must allow pidfd_getfd");
        }
        SystemCalls.closeOnce(copy);
        return new MechanismVerdict(true, Capabilities.INTERRUPT, TegraDevice.PATH
            + " can be opened; TSGs are removed from the runlist by the stock driver"
            + (Files.exists(PATCHED) ? ", no ioctl of a patch is used" : ""));
    }

    private static MechanismVerdict refused(final String reason) {
        return new MechanismVerdict(false, Capabilities.INTERRUPT, reason);
    }
}
