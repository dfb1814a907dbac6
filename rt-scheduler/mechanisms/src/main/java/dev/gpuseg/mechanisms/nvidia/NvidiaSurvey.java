/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.nvidia;

import dev.gpuseg.ipc.platform.BoundedFile;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.Privilege;
import dev.gpuseg.mechanisms.RemoteDescriptors;
import dev.gpuseg.mechanisms.SystemCalls;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** Says whether this mechanism works on this machine. {@link #verdict} touches no process but this one. */
public final class NvidiaSurvey {
    /** One thing that was examined: whether the mechanism can work with it, and what was found or is to do. */
    record Finding(boolean good, String text) {
    }

    private static final Path VERSION = Path.of("/proc/driver/nvidia/version");
    private static final Path YAMA = Path.of("/proc/sys/kernel/yama/ptrace_scope");
    private static final String TESTED = "580.159.04";
    private static final String FIRMWARE = "GPU Firmware:";
    private static final String MODEL = "Model:";
    private static final Pattern NUMBER = Pattern.compile("\\b[0-9]{3,4}\\.[0-9]+(\\.[0-9]+)?\\b");
    private static final String NO_FIRMWARE = "N/A";

    private NvidiaSurvey() {
    }

    /** Whether the driver answers, and no stand-in; true unless this process was started with a stand-in. */
    public static boolean isRealDriver() {
        return !DriverCalls.DRIVER.isReplaced();
    }

    /** The first obstacle, or which driver was found; usable, at level 3, if there is no obstacle. */
    public static MechanismVerdict verdict() {
        final int fd = DriverCalls.DRIVER.open(RmProcess.CONTROL_DEVICE);
        if (fd < 0) {
            return new MechanismVerdict(false, Capabilities.INTERRUPT, RmProcess.CONTROL_DEVICE
                + " cannot be opened (errno " + -fd + "); load NVIDIA's driver or run as a user who may open it");
        }
        SystemCalls.closeOnce(fd);
        for (final Finding f : List.of(descriptors(), privilege(), firmware(GpuIndex.directory()))) {
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
        final String version = read(VERSION);
        if (version.isEmpty()) {
            return "version unknown: " + VERSION + " is missing";
        }
        final String line = version.lines().findFirst().orElse("").replaceAll("\\s+", " ").strip();
        final String flavour = line.contains("Open Kernel Module") ? "open module" : "closed module, not tested";
        return line + " (" + flavour + (line.contains(TESTED) ? ", tested)" : ", tested with " + TESTED + ")")
            + DriverBranches.remark(line);
    }

    /** Version of the driver, such as 580.159.04; empty = it does not say. */
    public static String driverVersion() {
        return version(read(VERSION).lines().findFirst().orElse(""));
    }

    static String version(final String line) {
        final Matcher number = NUMBER.matcher(line);
        return number.find() ? number.group() : "";
    }

    /** Models of all GPUs that the driver lists, each once, in order; empty = it lists none. */
    public static String models() {
        return models(GpuIndex.directory());
    }

    static String models(final Path gpus) {
        final Set<String> models = new TreeSet<>();
        try (Stream<Path> list = Files.isDirectory(gpus) ? Files.list(gpus) : Stream.empty()) {
            list.forEach(gpu -> read(gpu.resolve("information")).lines().filter(line -> line.startsWith(MODEL))
                .forEach(line -> models.add(line.substring(MODEL.length()).strip())));
        } catch (final IOException e) {
            return "";
        }
        return String.join(", ", models);
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
        final String scope = read(YAMA).strip();
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
        final List<String> without = new ArrayList<>();
        int listed = 0;
        try (Stream<Path> list = Files.isDirectory(gpus) ? Files.list(gpus).sorted() : Stream.empty()) {
            for (final Path gpu : (Iterable<Path>) list::iterator) {
                listed++;
                if (read(gpu.resolve("information")).lines().anyMatch(line -> line.startsWith(FIRMWARE)
                    && line.substring(FIRMWARE.length()).strip().equals(NO_FIRMWARE))) {
                    without.add(String.valueOf(gpu.getFileName()));
                }
            }
        } catch (final IOException e) {
            return new Finding(true, "GSP firmware unknown: " + gpus + " cannot be read");
        }
        return without.isEmpty() || without.size() < listed
            ? new Finding(true, listed == 0 ? "GSP firmware unknown" : "GSP firmware on " + (listed - without.size())
                + " of " + listed + " GPUs")
            : new Finding(false, "no GSP firmware on " + String.join(", ", without) + " (" + FIRMWARE + " "
                + NO_FIRMWARE + "): the driver disables no channels; NVreg_EnableGpuFirmware=1 turns it on where the "
                + "GPU has it, else use mechanism launch. `gpuseg selftest` proves what holds");
    }

    private static String read(final Path path) {
        try {
            return BoundedFile.text(path, StandardCharsets.ISO_8859_1);
        } catch (final IOException e) {
            return "";   // its absence is a finding, not an error
        }
    }
}
