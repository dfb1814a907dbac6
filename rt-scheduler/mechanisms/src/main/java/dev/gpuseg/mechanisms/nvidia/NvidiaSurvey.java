/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** What stands in the way of this mechanism on this machine, without touching any process but this one. */
public final class NvidiaSurvey {
    /** One thing that was examined: what it is, whether the mechanism can work with it, what was found or is to do. */
    private record Finding(String subject, boolean good, String text) {
    }

    private static final Path VERSION = Path.of("/proc/driver/nvidia/version");
    private static final Path OWN_STATUS = Path.of("/proc/self/status");
    private static final Path YAMA = Path.of("/proc/sys/kernel/yama/ptrace_scope");
    private static final int CAP_SYS_PTRACE = 19;
    private static final int HEX = 16;
    private static final String TESTED = "580.159.04";

    private NvidiaSurvey() {
    }

    /** In the order in which they matter. */
    private static List<Finding> findings() {
        final List<Finding> found = new ArrayList<>();
        final int fd = DriverCalls.open(RmProcess.CONTROL_DEVICE);
        if (fd < 0) {
            found.add(new Finding("control device", false, RmProcess.CONTROL_DEVICE + " cannot be opened (errno " + -fd
                + "); load NVIDIA's driver or run as a user who may open it"));
            return found;
        }
        SystemCalls.closeOnce(fd);
        found.add(new Finding("control device", true, RmProcess.CONTROL_DEVICE + " can be opened"));
        found.add(driver());
        found.add(descriptors());
        found.add(privilege());
        final int gpus = gpus();
        found.add(new Finding("GPUs", true, gpus == 0 ? "the driver lists none; one is assumed"
            : "the driver lists " + gpus));
        return found;
    }

    /**
     * The first thing that stands in the way, or what works.
     *
     * @return usable, at level 3, only if nothing does
     */
    public static MechanismVerdict verdict() {
        final List<Finding> all = findings();
        for (final Finding f : all) {
            if (!f.good()) {
                return new MechanismVerdict(false, Capabilities.INTERRUPT, f.text());
            }
        }
        return new MechanismVerdict(true, Capabilities.INTERRUPT, all.get(1).text());
    }

    /**
     * How many GPUs this machine has.
     *
     * @return those that the driver lists and whose device nodes are there; 0 = it lists none, one is assumed
     */
    public static int gpus() {
        return GpuIndex.ofThisMachine().count();
    }

    /**
     * What the driver says a process's compute work may run before it switches to another.
     *
     * @param pid a process that uses the first GPU
     * @return ns, 0 if the driver does not tell
     */
    public static long timesliceNs(final int pid) {
        final RmControl rm = new RmControl();
        final RmProcess process = RmProcess.open(pid, GpuIndex.ofThisMachine(), Scope.COMPUTE, rm);
        if (process == null) {
            return 0;
        }
        try {
            process.refresh(System.nanoTime(), new Object());
            final RmContext context = process.context(0);
            if (context != null) {
                for (final RmContext.Tsg tsg : context.tsgs()) {
                    final long us = tsg.compute() ? rm.timesliceUs(tsg.file().fd(), tsg.client(), tsg.handle()) : 0;
                    if (us > 0) {
                        return TimeUnit.MICROSECONDS.toNanos(us);
                    }
                }
            }
            return 0;
        } finally {
            process.close();
        }
    }

    private static Finding driver() {
        final String version = read(VERSION);
        if (version.isEmpty()) {
            return new Finding("driver", true, "version unknown: " + VERSION + " is missing");
        }
        final String line = version.lines().findFirst().orElse("").replaceAll("\\s+", " ").strip();
        final String flavour = line.contains("Open Kernel Module") ? "open module" : "closed module, not tested";
        return new Finding("driver", true, line + " (" + flavour
            + (line.contains(TESTED) ? ", tested)" : ", tested with " + TESTED + ")"));
    }

    private static Finding descriptors() {
        final int pidfd = SystemCalls.pidfdOpen((int) ProcessHandle.current().pid());
        if (pidfd < 0) {
            return new Finding("pidfd", false, "pidfd_open: errno " + -pidfd + "; a kernel of 5.6 or later is needed");
        }
        final int copy = SystemCalls.pidfdGetfd(pidfd, pidfd);
        SystemCalls.closeOnce(pidfd);
        if (copy < 0) {
            return new Finding("pidfd", false, "pidfd_getfd: errno " + -copy
                + "; a kernel of 5.6 or later is needed, and a container must allow the call");
        }
        SystemCalls.closeOnce(copy);
        return new Finding("pidfd", true, "descriptors of other processes can be duplicated");
    }

    private static Finding privilege() {
        long effective = 0;
        for (final String line : read(OWN_STATUS).split("\n")) {
            if (line.startsWith("CapEff:")) {
                effective = Long.parseUnsignedLong(line.substring(line.indexOf(':') + 1).strip(), HEX);
            }
        }
        if ((effective >>> CAP_SYS_PTRACE & 1) == 1) {
            return new Finding("privilege", true, "CAP_SYS_PTRACE: processes of every user can be scheduled");
        }
        final String scope = read(YAMA).strip();
        if (scope.isEmpty() || scope.equals("0")) {
            return new Finding("privilege", true,
                "no CAP_SYS_PTRACE: only processes of the same user can be scheduled");
        }
        return new Finding("privilege", false, "no CAP_SYS_PTRACE and kernel.yama.ptrace_scope is " + scope
            + ": no other process can be scheduled; run the daemon as root or give it the capability");
    }

    private static String read(final Path path) {
        try {
            return Files.readString(path, StandardCharsets.ISO_8859_1);
        } catch (final IOException e) {
            return "";   // its absence is a finding, not an error
        }
    }
}
