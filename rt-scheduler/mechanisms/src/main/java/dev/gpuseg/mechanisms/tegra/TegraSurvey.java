/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.tegra;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SelftestResult;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Says whether this mechanism works on this machine. Touches no process but this one. */
public final class TegraSurvey {
    private static final String RELEASE = "/etc/nv_tegra_release";
    private static final Pattern VERSION = Pattern.compile("# R(\\d+) \\(release\\), REVISION: (\\d[\\d.]*)");
    private static final String PATCHED = "/dev/nvgpu/igpu0/ctrl";

    private TegraSurvey() {
    }

    /** Whether the driver answers, and no stand-in; true unless this process was started with a stand-in. */
    public static boolean isRealDriver() {
        return !TegraCalls.DRIVER.isReplaced();
    }

    /** Whether the GPU of this machine is nvgpu's. */
    public static boolean isPresent() {
        return Files.exists(MachineFiles.at(TegraDevice.PATH));
    }

    /** Such as R36.4.3, of the board's software; where that does not say it, the kernel's version. */
    public static String driverVersion() {
        try {
            final Matcher version = VERSION.matcher(BoundedFile.text(MachineFiles.at(RELEASE),
                StandardCharsets.ISO_8859_1));
            if (version.find()) {
                return "R" + version.group(1) + "." + version.group(2);
            }
        } catch (final IOException e) {
            return MachineFiles.kernelVersion();   // not NVIDIA's own distribution
        }
        return MachineFiles.kernelVersion();
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
        return SelftestResult.correct("tegra", new MechanismVerdict(true, Capabilities.INTERRUPT, TegraDevice.PATH
            + " can be opened; TSGs are removed from the runlist by the stock driver"
            + (Files.exists(MachineFiles.at(PATCHED)) ? ", no ioctl of a patch is used" : "")));
    }

    private static MechanismVerdict refused(final String reason) {
        return new MechanismVerdict(false, Capabilities.INTERRUPT, reason);
    }
}
