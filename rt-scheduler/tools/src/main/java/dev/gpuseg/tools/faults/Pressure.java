/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.faults;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** How short of processors the machine is: a limit that passes there may have another cause than the fault. */
final class Pressure {
    private static final Path OF_PROCESSORS = Path.of("/proc/pressure/cpu");

    private Pressure() {
    }

    /** Load average, and the share of time in which processes waited for a processor; for a message. */
    static String now() {
        final String load = String.format(Locale.ROOT, "load average %.1f",
            ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
        try {
            return load + ", pressure on processors: " + Files.readAllLines(OF_PROCESSORS).get(0);
        } catch (final IOException e) {
            return load;   // a kernel without pressure figures
        }
    }
}
