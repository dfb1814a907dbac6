/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import java.io.FileInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * What engineers of real-time systems look at before they trust a machine: each with its value, a verdict and the exact
 * remedy. Reads files below a root ({@code /proc}, {@code /sys}, {@code /etc}, {@code /run}), changes nothing. None of
 * it keeps the
 * daemon from running, so nothing here is a fault.
 */
final class RealTimeHygiene {
    private static final String CPUS = "sys/devices/system/cpu/";
    private static final String GROUP = "gpuseg";
    /** Names of programs that ask the driver all the time. */
    private static final Set<String> MONITORS = Set.of("nvidia-smi", "nvtop", "dcgm-exporter", "nv-hostengine",
        "nvitop", "gpustat", "jtop", "tegrastats");
    private static final long RTPRIO_WANTED = 50;
    private static final int CAP_IPC_LOCK = 14;
    private static final long FILES_WANTED = 1024;
    private static final long IDLE_EXIT_US_MAX = 100;
    private static final int IRQS_SHOWN = 4;
    private static final int LIMIT_COLUMN = 26;

    private final Path root;
    private final int dispatcherCpu;
    private final List<DoctorCheck> checks = new ArrayList<>();

    /**
     * Looks at a machine.
     *
     * @param root          {@code /}, or a copy of a machine's files
     * @param dispatcherCpu the CPU that the dispatcher is to have, -1 = not chosen
     */
    RealTimeHygiene(final Path root, final int dispatcherCpu) {
        this.root = root;
        this.dispatcherCpu = dispatcherCpu;
    }

    /** All checks, in a fixed order. */
    List<DoctorCheck> checks() {
        checks.clear();
        kernel();
        processors();
        interrupts();
        memory();
        limits();
        access();
        graphics();
        return List.copyOf(checks);
    }

    private void add(final String name, final boolean good, final String found, final String remedy) {
        checks.add(DoctorCheck.of(name, good, found, remedy));
    }

    private void kernel() {
        final String version = read("proc/version");
        final boolean realTime = read("sys/kernel/realtime").equals("1") || version.contains("PREEMPT_RT");
        final String flavour = realTime ? "PREEMPT_RT" : version.contains("PREEMPT_DYNAMIC") ? "PREEMPT_DYNAMIC"
            : version.contains("PREEMPT") ? "PREEMPT" : version.isEmpty() ? "unknown" : "not preemptible";
        add("real-time kernel", realTime, flavour, "install a PREEMPT_RT kernel (Debian: apt install linux-image-rt-"
            + (System.getProperty("os.arch").equals("aarch64") ? "arm64" : "amd64")
            + "); it bounds the time from wake-up to run");
        final String runtime = read("proc/sys/kernel/sched_rt_runtime_us");
        add("real-time throttling", runtime.equals("-1"), runtime.equals("-1") ? "off" : runtime.isEmpty() ? "unknown"
            : "real-time threads get " + runtime + " us of " + read("proc/sys/kernel/sched_rt_period_us") + " us",
            "sysctl -w kernel.sched_rt_runtime_us=-1, if real-time tasks may need a whole CPU");
        final String clock = read("sys/devices/system/clocksource/clocksource0/current_clocksource");
        add("clock", clock.equals("tsc") || clock.equals("kvm-clock") || clock.startsWith("arch"),
            clock.isEmpty() ? "unknown" : clock, "boot with clocksource=tsc tsc=reliable if the processor has a "
                + "constant TSC; "
            + "reading another clock can take a microsecond");
    }

    private void processors() {
        final String isolated = read(CPUS + "isolated");
        final String chosen = dispatcherCpu < 0 ? "N" : Integer.toString(dispatcherCpu);
        add("isolated CPUs", !isolated.isEmpty() && (dispatcherCpu < 0 || cpus(isolated).get(dispatcherCpu)),
            isolated.isEmpty() ? "none" : isolated, "boot with isolcpus=" + chosen + " and run with --cpu " + chosen);
        final String tickless = read(CPUS + "nohz_full").replace("(null)", "");
        add("tickless CPUs", !tickless.isEmpty() && (dispatcherCpu < 0 || cpus(tickless).get(dispatcherCpu)),
            tickless.isEmpty() ? "none" : tickless, "boot with nohz_full=" + chosen
            + ": the timer tick interrupts the dispatcher up to 1000 times a second");
        final String callbacks = bootOption("rcu_nocbs");
        add("RCU callbacks", !callbacks.isEmpty() || !tickless.isEmpty(), callbacks.isEmpty() ? tickless.isEmpty()
            ? "on every CPU" : "off the tickless CPUs" : "off CPUs " + callbacks, "boot with rcu_nocbs=" + chosen);
        governor();
        idleStates();
        final boolean siblings = read(CPUS + "smt/active").equals("1");
        final String pair = dispatcherCpu < 0 ? "" : read(CPUS + "cpu" + dispatcherCpu
            + "/topology/thread_siblings_list");
        final boolean shared = siblings && (dispatcherCpu < 0 || cpus(pair).cardinality() > 1);
        add("SMT siblings", !shared, !siblings ? "none" : dispatcherCpu < 0 ? "cores are shared by two threads"
            : shared ? "CPU " + dispatcherCpu + " shares a core: " + pair : "CPU " + dispatcherCpu + " has its core "
            + "alone",
            "echo off > /sys/devices/system/cpu/smt/control, or keep the sibling of the dispatcher's CPU idle");
    }

    private void governor() {
        final TreeSet<String> governors = new TreeSet<>();
        for (final Path cpu : entries(CPUS, "cpu[0-9]*")) {
            final String governor = text(cpu.resolve("cpufreq/scaling_governor"));
            if (!governor.isEmpty()) {
                governors.add(governor);
            }
        }
        final String found = governors.isEmpty() ? "not controlled here (a virtual machine, or fixed clocks)"
            : String.join(", ", governors);
        add("CPU governor", governors.isEmpty() || governors.equals(new TreeSet<>(List.of("performance"))), found,
            "cpupower frequency-set -g performance (on a Jetson: jetson_clocks)");
    }

    private void idleStates() {
        long slowest = 0;
        String name = "";
        for (final Path state : entries(CPUS + "cpu" + Math.max(0, dispatcherCpu) + "/cpuidle", "state[0-9]*")) {
            final long exitUs = number(text(state.resolve("latency")));
            if (exitUs > slowest && !text(state.resolve("disable")).equals("1")) {
                slowest = exitUs;
                name = text(state.resolve("name"));
            }
        }
        add("idle states", slowest <= IDLE_EXIT_US_MAX, slowest == 0 ? "none that costs time to leave"
            : name + " takes " + slowest + " us to leave",
            "cpupower idle-set -D " + IDLE_EXIT_US_MAX + ", or boot with processor.max_cstate=1");
    }

    private void interrupts() {
        final BitSet ours = new BitSet();
        if (dispatcherCpu >= 0) {
            ours.set(dispatcherCpu);
        } else {
            ours.or(cpus(read(CPUS + "isolated")));
        }
        if (ours.isEmpty()) {
            add("interrupts", true, "no CPU is set apart for the dispatcher, so none to keep them from", "");
            return;
        }
        final List<String> there = new ArrayList<>();
        for (final Path irq : entries("proc/irq", "[0-9]*")) {
            final String effective = text(irq.resolve("effective_affinity_list"));
            final String list = effective.isEmpty() ? text(irq.resolve("smp_affinity_list")) : effective;
            if (cpus(list).intersects(ours)) {
                there.add(irq.getFileName().toString());
            }
        }
        there.sort(java.util.Comparator.comparingLong(RealTimeHygiene::number));
        final String some = String.join(" ", there.subList(0, Math.min(IRQS_SHOWN, there.size())));
        add("interrupts", there.isEmpty(), there.isEmpty() ? "none on CPU " + list(ours) : there.size()
            + " may arrive on CPU " + list(ours) + ": " + some + (there.size() > IRQS_SHOWN ? " ..." : ""),
            "boot with irqaffinity= the other CPUs, or for each IRQ: echo CPUS > /proc/irq/IRQ/smp_affinity_list "
            + "(and stop irqbalance)");
    }

    private void memory() {
        final String huge = read("sys/kernel/mm/transparent_hugepage/enabled");
        add("transparent huge pages", !huge.contains("[always]"), huge.isEmpty() ? "not in this kernel"
            : huge.replaceAll(".*\\[(.*)].*", "$1"), "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled: "
            + "collapsing pages stalls threads");
        final long swaps = lines("proc/swaps").stream().skip(1).filter(line -> !line.isBlank()).count();
        add("swap", swaps == 0, swaps == 0 ? "none" : swaps + (swaps == 1 ? " area" : " areas"),
            "swapoff -a, and remove it from /etc/fstab");
        final String balancing = read("proc/sys/kernel/numa_balancing");
        add("NUMA balancing", balancing.isEmpty() || balancing.equals("0"), balancing.isEmpty() ? "not in this kernel"
            : balancing.equals("0") ? "off" : "on", "sysctl -w kernel.numa_balancing=0: it unmaps pages to see which "
            + "CPUs use them");
    }

    private void limits() {
        limit("Max realtime priority", RTPRIO_WANTED, "in /etc/security/limits.d/gpuseg.conf: @gpuseg - rtprio 99; "
            + "then log in again");
        // less does not do: daemon and watchdog lock all they have, and what they map later would fail
        limit("Max locked memory", mayLockAll() ? 0 : Long.MAX_VALUE, "in /etc/security/limits.d/gpuseg.conf: @gpuseg "
            + "- memlock unlimited (or CAP_IPC_LOCK); then log in again");
        limit("Max open files", FILES_WANTED, "in /etc/security/limits.d/gpuseg.conf: @gpuseg - nofile 65536; every "
            + "client "
            + "takes a few descriptors");
    }

    private void limit(final String name, final long wanted, final String remedy) {
        for (final String line : lines("proc/self/limits")) {
            if (line.startsWith(name) && line.length() > LIMIT_COLUMN) {
                final String soft = line.substring(LIMIT_COLUMN).trim().split("\\s+")[0];
                add(name.toLowerCase(java.util.Locale.ROOT), soft.equals("unlimited") || number(soft) >= wanted, soft,
                    remedy);
            }
        }
    }

    private boolean mayLockAll() {
        final String capabilities = status("CapEff:");
        return !capabilities.isEmpty() && (Long.parseUnsignedLong(capabilities, 16) >>> CAP_IPC_LOCK & 1) != 0;
    }

    private void access() {
        final String entry = lines("etc/group").stream().filter(line -> line.startsWith(GROUP + ":")).findFirst()
            .orElse("");
        final boolean superuser = status("Uid:").startsWith("0");
        final boolean member = superuser || !entry.isEmpty() && Arrays.asList(
            (status("Groups:") + " " + status("Gid:")).trim().split("\\s+")).contains(entry.split(":")[2]);
        add("group gpuseg", !entry.isEmpty() && member, entry.isEmpty() ? "does not exist" : superuser ? "exists; "
            + "root needs no "
            + "membership" : member ? "this user is a member" : "this user is no member", entry.isEmpty()
            ? "groupadd --system gpuseg (the package does): only the daemon's own user may connect without it"
            : "adduser USER gpuseg, then log in again");
        final boolean systemd = Files.isDirectory(root.resolve("run/systemd/system"));
        final boolean unit = Files.exists(root.resolve("lib/systemd/system/gpuseg.service"))
            || Files.exists(root.resolve("etc/systemd/system/gpuseg.service"));
        final boolean enabled = Files.exists(root.resolve("etc/systemd/system/multi-user.target.wants/gpuseg.service"),
            java.nio.file.LinkOption.NOFOLLOW_LINKS);
        add("systemd unit", !systemd || !unit || enabled, !systemd ? "systemd does not run here" : !unit ? "not "
            + "installed"
            : enabled ? "enabled" : "installed, not enabled", "systemctl enable --now gpuseg");
    }

    private void graphics() {
        if (Files.exists(root.resolve("proc/driver/nvidia/version"))) {
            final boolean kept = Files.exists(root.resolve("run/nvidia-persistenced/socket"));
            add("GPU persistence", kept, kept ? "nvidia-persistenced runs" : "nvidia-persistenced does not run",
                "systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1: else the driver unloads between "
                + "programs");
            driversLock();
            final boolean shared = Files.exists(root.resolve("tmp/nvidia-mps/control"));
            add("GPU sharing", !shared, shared ? "MPS runs" : "MPS does not run", "echo quit | "
                + "nvidia-cuda-mps-control: beside a task that is a client of MPS its server and the other clients "
                + "stay on the GPU");
        }
        if (Files.exists(root.resolve("etc/nv_tegra_release"))) {
            final String mode = read("var/lib/nvpmodel/status");
            add("power mode", mode.contains("pmode:0000"), mode.isEmpty() ? "unknown" : mode,
                "nvpmodel -m 0 && jetson_clocks: else the clocks follow the load");
        }
    }

    /** Calls that disable contexts wait for one lock of the driver, which all of these take. */
    private void driversLock() {
        final Set<String> monitors = new TreeSet<>();
        final Set<String> throttled = new TreeSet<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(root.resolve("proc"), "[0-9]*")) {
            for (final Path process : processes) {
                final String name = read("proc/" + process.getFileName() + "/comm");
                if (MONITORS.contains(name)) {
                    monitors.add(name + " (pid " + process.getFileName() + ")");
                }
                if (usesGpu(process) && hasQuota(process.getFileName().toString())) {
                    throttled.add(name + " (pid " + process.getFileName() + ")");
                }
            }
        } catch (final IOException e) {
            monitors.add("unknown: " + e.getMessage());
        }
        add("GPU monitors", monitors.isEmpty(), monitors.isEmpty() ? "none polls" : String.join(", ", monitors),
            "let them poll rarely, and with one process that stays: each query and each start takes the driver's lock, "
            + "for which calls wait");
        add("cpu.max of GPU processes", throttled.isEmpty(), throttled.isEmpty() ? "none"
            : String.join(", ", throttled), "remove cpu.max there: a process that is throttled while it holds the "
            + "driver's lock delays the calls of all; use cpu.weight");
        final boolean set = read("proc/driver/nvidia/params").contains("RmRoApiLock");
        checks.add(new DoctorCheck("driver's lock", DoctorCheck.Verdict.OK, (set ? "RmRoApiLock is set" : "as NVIDIA "
            + "ships it") + "; a crash loop or programs that start again and again hold it. An integrator may set "
            + "NVreg_RegistryDwords RmRoApiLock=0x3fe, RMClientListDeferredFree=1, RMGpuLockMidpath=1, and nvidia-smi "
            + "compute-policy --set-timeslice=short: NVIDIA ships them off, not measured here", ""));
    }

    private static boolean usesGpu(final Path process) {
        try {
            return OpenFiles.any(process, path -> path.startsWith("/dev/nvidia"));
        } catch (final IOException e) {
            return false;   // it has ended, or is another user's
        }
    }

    /** Whether its control group, or one above, has less than all processors at times. */
    private boolean hasQuota(final String pid) {
        for (final String line : read("proc/" + pid + "/cgroup").split("\n")) {
            if (line.startsWith("0::/")) {
                for (Path at = Path.of(line.substring("0::/".length())); at != null; at = at.getParent()) {
                    final String quota = read("sys/fs/cgroup/" + at + "/cpu.max");
                    if (!quota.isEmpty() && !quota.startsWith("max")) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    // ---- reading

    private String bootOption(final String name) {
        for (final String word : read("proc/cmdline").split("\\s+")) {
            if (word.startsWith(name + "=")) {
                return word.substring(name.length() + 1);
            }
        }
        return "";
    }

    private String status(final String field) {
        return lines("proc/self/status").stream().filter(line -> line.startsWith(field)).findFirst()
            .map(line -> line.substring(field.length()).trim()).orElse("");
    }

    private String read(final String path) {
        return text(root.resolve(path));
    }

    private static String text(final Path path) {
        // not Files.readString: it asks files of no size for one byte first, and numbers in /proc/sys end there
        try (FileInputStream in = new FileInputStream(path.toFile())) {
            return new String(in.readAllBytes(), StandardCharsets.ISO_8859_1).trim();
        } catch (final IOException e) {
            return "";   // absent on this kernel, or not for us: the check says so
        }
    }

    private List<String> lines(final String path) {
        return read(path).lines().toList();
    }

    private List<Path> entries(final String directory, final String pattern) {
        final List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> stream = Files.newDirectoryStream(root.resolve(directory), pattern)) {
            stream.forEach(found::add);
        } catch (final IOException e) {
            return List.of();   // absent on this kernel
        }
        return found;
    }

    private static long number(final String text) {
        return text.matches("[0-9]{1,18}") ? Long.parseLong(text) : 0;
    }

    /** A list as the kernel writes it: 0-2,5. */
    static BitSet cpus(final String list) {
        final BitSet set = new BitSet();
        for (final String part : list.split(",")) {
            final String[] ends = part.trim().split("-");
            if (ends[0].matches("[0-9]{1,5}")) {
                final int last = ends.length == 2 && ends[1].matches("[0-9]{1,5}") ? Integer.parseInt(ends[1])
                    : Integer.parseInt(ends[0]);
                set.set(Integer.parseInt(ends[0]), Math.max(last, Integer.parseInt(ends[0])) + 1);
            }
        }
        return set;
    }

    private static String list(final BitSet set) {
        return set.toString().replaceAll("[{} ]", "");
    }
}
