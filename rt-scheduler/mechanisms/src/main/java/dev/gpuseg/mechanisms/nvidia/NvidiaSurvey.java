/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.Layouts;
import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.Privilege;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SelftestResult;
import dev.gpuseg.mechanisms.SystemCalls;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Says whether this mechanism works on this machine. {@link #verdict} touches no process but this one. */
public final class NvidiaSurvey {
    /** One thing that was examined: whether the mechanism can work with it, and what was found or is to do. */
    record Finding(boolean good, String text) {
    }

    private static final String YAMA = "/proc/sys/kernel/yama/ptrace_scope";
    private static final String TESTED = "580.159.04";

    private NvidiaSurvey() {
    }

    /** Whether the driver answers, and no stand-in; true unless this process was started with a stand-in. */
    public static boolean isRealDriver() {
        return !DriverCalls.DRIVER.isReplaced();
    }

    /** The first obstacle, or which driver was found; usable, at level 3, if there is no obstacle. */
    public static MechanismVerdict verdict() {
        final Finding display = displayOnly();
        if (!display.good()) {
            return new MechanismVerdict(false, Capabilities.INTERRUPT, display.text());
        }
        final int fd = DriverCalls.DRIVER.open(MachineFiles.at(RmProcess.CONTROL_DEVICE).toString());
        if (fd < 0) {
            return new MechanismVerdict(false, Capabilities.INTERRUPT, RmProcess.CONTROL_DEVICE
                + " cannot be opened (errno " + -fd + "); load NVIDIA's driver or run as a user who may open it");
        }
        SystemCalls.closeOnce(fd);
        for (final Finding f : List.of(descriptors(), privilege(), firmware(GpuIndex.directory()), proven())) {
            if (!f.good()) {
                return new MechanismVerdict(false, Capabilities.INTERRUPT, f.text());
            }
        }
        return new MechanismVerdict(true, Capabilities.INTERRUPT, driver());
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
     * How long the driver lets compute work of a process run before it switches to another.
     *
     * @param pid a process that uses the first GPU
     * @return ns, 0 if the driver does not say
     */
    public static long timesliceNs(final int pid) {
        final RmControl rm = new RmControl();
        final RmProcess process = RmProcess.open(pid, GpuIndex.ofThisMachine(), Scope.COMPUTE, rm);
        if (process == null) {
            return 0;
        }
        try {
            process.refresh(System.nanoTime(), ControlCloser.inPlace());
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

    private static String driver() {
        final String line = NvidiaMachine.driverLine();
        if (line.isEmpty()) {
            return "version unknown: /proc/driver/nvidia/version is missing";
        }
        final String flavour = line.contains("Open Kernel Module") ? "open module" : "closed module, not tested";
        return line + " (" + flavour + (line.contains(TESTED) ? ", tested)" : ", tested with " + TESTED + ")")
            + SelftestResult.last().filter(SelftestResult::proves).map(r -> "; proven here by `gpuseg selftest` on "
                + r.day()).orElseGet(() -> DriverBranches.remark(line));
    }

    private static Finding descriptors() {
        final String refusal = RemoteDescriptors.refusal();
        return new Finding(refusal.isEmpty(), refusal.isEmpty() ? "descriptors of other processes can be duplicated"
            : refusal);
    }

    private static Finding privilege() {
        if (Privilege.SYS_PTRACE.held()) {
            return new Finding(true, "CAP_SYS_PTRACE: processes of every user can be scheduled");
        }
        final String scope = NvidiaMachine.read(MachineFiles.at(YAMA)).strip();
        if (scope.isEmpty() || scope.equals("0")) {
            return new Finding(true, "no CAP_SYS_PTRACE: only processes of the same user can be scheduled");
        }
        return new Finding(false, "no CAP_SYS_PTRACE and kernel.yama.ptrace_scope is " + scope
            + ": no other process can be scheduled; run the daemon as root or give it the capability");
    }

    /**
     * The driver passes channels to disable on to the firmware of the GPU's system processor (GSP). A GPU without it
     * has nobody who would do it.
     */
    static Finding firmware(final Path gpus) {
        final List<Path> listed = NvidiaMachine.gpus(gpus);
        final List<String> without = listed.stream().filter(gpu -> NvidiaMachine.firmware(gpu)
            == NvidiaMachine.Firmware.NONE).map(gpu -> gpu.getFileName().toString()).toList();
        return without.isEmpty() || without.size() < listed.size()
            ? new Finding(true, listed.isEmpty() ? "GSP firmware unknown" : "GSP firmware on " + (listed.size()
                - without.size()) + " of " + listed.size() + " GPUs")
            : new Finding(false, "no GSP firmware on " + String.join(", ", without) + " (GPU Firmware: N/A): the "
                + "driver disables no channels; NVreg_EnableGpuFirmware=1 turns it on where the "
                + "GPU has it, else use mechanism launch. `gpuseg selftest` proves what holds");
    }

    /** On a Tegra board up to Orin the GPU is nvgpu's, and NVIDIA's other driver has the display alone. */
    private static Finding displayOnly() {
        final boolean nvgpu = Files.exists(MachineFiles.at(Layouts.TEGRA_SCHED_DEVICE))
            || Files.exists(MachineFiles.at("/dev/nvgpu"));
        return nvgpu && NvidiaMachine.gpus(GpuIndex.directory()).stream().noneMatch(gpu -> NvidiaMachine.firmware(gpu)
            == NvidiaMachine.Firmware.RUNS)
                ? new Finding(false, "the GPU of this board is driven by nvgpu, and NVIDIA's other driver has at most "
                    + "the display; use mechanism tegra")
                : new Finding(true, "no nvgpu");
    }

    /** What was proven here decides where the driver's source says nothing, and against it. */
    private static Finding proven() {
        final Optional<SelftestResult> last = SelftestResult.last();
        if (last.filter(SelftestResult::refutes).isPresent()) {
            return new Finding(false, "`gpuseg selftest` found on " + last.get().day() + " that running work is not "
                + "interrupted: " + last.get().sentence() + " Use mechanism launch, or run it again");
        }
        final String line = NvidiaMachine.driverLine();
        return DriverBranches.isOlderThanAll(line) && last.filter(SelftestResult::proves).isEmpty()
            ? new Finding(false, "driver branch " + DriverBranches.branchOf(line).getAsInt() + " is older than any "
                + "that is known to disable channels (" + DriverBranches.oldest() + "); install a newer driver, or let "
                + "`gpuseg selftest` prove that it works. Until then use mechanism launch")
            : new Finding(true, "nothing is proven against it");
    }
}
