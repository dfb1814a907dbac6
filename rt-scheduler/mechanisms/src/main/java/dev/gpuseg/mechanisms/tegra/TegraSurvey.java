/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.file.Files;

/** Says whether this mechanism works on this machine. Touches no process but this one. */
public final class TegraSurvey {
    private static final String PATCHED = "/dev/nvgpu/igpu0/ctrl";

    private TegraSurvey() {
    }

    /** Whether the driver answers, and no stand-in; true unless this process was started with a stand-in. */
    public static boolean isRealDriver() {
        return !TegraCalls.DRIVER.isReplaced();
    }

    /** The first obstacle, or what was found; usable, at level 3, if there is no obstacle. */
    public static MechanismVerdict verdict() {
        final int fd = TegraCalls.DRIVER.open(MachineFiles.at(TegraDevice.PATH).toString());
        if (fd < 0) {
            return refused(TegraDevice.PATH + " cannot be opened (errno " + -fd
                + "); load nvgpu on a Tegra board and run as root");
        }
        SystemCalls.closeOnce(fd);
        final String refusal = RemoteDescriptors.refusal();
        if (!refusal.isEmpty()) {
            return refused(refusal);
        }
        return new MechanismVerdict(true, Capabilities.INTERRUPT, TegraDevice.PATH
            + " can be opened; TSGs are removed from the runlist by the stock driver"
            + (Files.exists(MachineFiles.at(PATCHED)) ? ", no ioctl of a patch is used" : ""));
    }

    private static MechanismVerdict refused(final String reason) {
        return new MechanismVerdict(false, Capabilities.INTERRUPT, reason);
    }
}
