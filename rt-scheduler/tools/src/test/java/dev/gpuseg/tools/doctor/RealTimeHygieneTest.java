/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.tools.doctor;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import dev.gpuseg.tools.doctor.DoctorCheck.Verdict;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Looks at invented machines: one on which all is well, and the same with one thing changed. */
class RealTimeHygieneTest {
    private static final int CPU = 3;
    private static final String SYSTEM = "sys/devices/system/cpu/";

    @TempDir
    private Path root;

    private void put(final String path, final String text) throws IOException {
        final Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text.replace("\\n", "\n") + "\n");
    }

    @BeforeEach
    void aGoodMachine() throws IOException {
        put("proc/version", "Linux version 6.12.1-rt (gcc) #1 SMP PREEMPT_RT");
        put("sys/kernel/realtime", "1");
        put("proc/sys/kernel/sched_rt_runtime_us", "-1");
        put("proc/sys/kernel/sched_rt_period_us", "1000000");
        put("proc/sys/kernel/numa_balancing", "0");
        put("sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc");
        put(SYSTEM + "isolated", "2-3");
        put(SYSTEM + "nohz_full", "2-3");
        put("proc/cmdline", "quiet isolcpus=2-3 nohz_full=2-3 rcu_nocbs=2-3");
        put(SYSTEM + "cpu3/cpufreq/scaling_governor", "performance");
        put(SYSTEM + "cpu3/cpuidle/state0/latency", "2");
        put(SYSTEM + "cpu3/cpuidle/state0/name", "C1");
        put(SYSTEM + "cpu3/topology/thread_siblings_list", "3");
        put(SYSTEM + "smt/active", "0");
        put("proc/irq/17/effective_affinity_list", "0-1");
        put("proc/irq/18/smp_affinity_list", "0");
        put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never");
        put("proc/swaps", "Filename Type Size Used Priority");
        put("proc/self/limits", """
            Limit                     Soft Limit           Hard Limit           Units
            Max realtime priority     99                   99
            Max locked memory         unlimited            unlimited            bytes
            Max open files            65536                65536                files""");
        put("proc/self/status", "Uid:\t1000\t1000\nGid:\t1000\t1000\nGroups:\t44 998");
        put("etc/group", "video:x:44:\ngpuseg:x:998:user");
        Files.createDirectories(root.resolve("run/systemd/system"));
        put("lib/systemd/system/gpuseg.service", "[Unit]");
        put("etc/systemd/system/multi-user.target.wants/gpuseg.service", "[Unit]");
        put("proc/driver/nvidia/version", "NVRM version: 580");
        put("run/nvidia-persistenced/socket", "");
        put("etc/nv_tegra_release", "R36");
        put("var/lib/nvpmodel/status", "pmode:0000");
    }

    private Map<String, DoctorCheck> look(final int cpu) {
        return new RealTimeHygiene(root, cpu).checks().stream()
            .collect(Collectors.toMap(DoctorCheck::name, Function.identity()));
    }

    @Test
    void shouldFindNothingToSayAboutAGoodMachine() {
        for (final DoctorCheck check : look(CPU).values()) {
            assertEquals(Verdict.OK, check.verdict(), check.toString());
            assertEquals("", check.remedy());
            assertFalse(check.found().isEmpty(), check.toString());
        }
    }

    @Test
    void shouldWantNoLimitOfLockedMemoryFromWhoMayLockAll() throws IOException {
        put("proc/self/limits", "Max locked memory         65536                65536                bytes");
        put("proc/self/status", "Uid:\t1000\t1000\nCapEff:\t0000000000004000");
        assertEquals(Verdict.OK, look(CPU).get("max locked memory").verdict());
        put("proc/self/status", "Uid:\t1000\t1000\nCapEff:\t000001ffffffbfff");
        assertEquals(Verdict.ADVICE, look(CPU).get("max locked memory").verdict());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', nullValues = "-", value = {
        "real-time kernel       | sys/kernel/realtime | 0 | proc/version | Linux SMP PREEMPT_DYNAMIC | "
            + "PREEMPT_DYNAMIC | linux-image-rt",
        "real-time throttling   | proc/sys/kernel/sched_rt_runtime_us | 950000 | - | - | 950000 us of 1000000 us | "
            + "sched_rt_runtime_us=-1",
        "clock                  | sys/devices/system/clocksource/clocksource0/current_clocksource | hpet | - | - | "
            + "hpet | clocksource=tsc",
        "isolated CPUs          | sys/devices/system/cpu/isolated | 1-2 | - | - | 1-2 | isolcpus=3",
        "tickless CPUs          | sys/devices/system/cpu/nohz_full | (null) | - | - | none | nohz_full=3",
        "RCU callbacks          | sys/devices/system/cpu/nohz_full | '' | proc/cmdline | quiet | on every CPU | "
            + "rcu_nocbs=3",
        "CPU governor           | sys/devices/system/cpu/cpu1/cpufreq/scaling_governor | schedutil | - | - | "
            + "performance, schedutil "
            + "| cpupower frequency-set -g performance",
        "idle states            | sys/devices/system/cpu/cpu3/cpuidle/state2/latency | 350 | - | - | 350 us to "
            + "leave | cpupower idle-set -D",
        "SMT siblings           | sys/devices/system/cpu/smt/active | 1 | "
            + "sys/devices/system/cpu/cpu3/topology/thread_siblings_list | 3,7 "
            + "| CPU 3 shares a core: 3,7 | smt/control",
        "interrupts             | proc/irq/18/smp_affinity_list | 0-3 | - | - | 1 may arrive on CPU 3: 18 | "
            + "irqaffinity=",
        "transparent huge pages | sys/kernel/mm/transparent_hugepage/enabled | [always] madvise never | - | - | "
            + "always | echo madvise",
        "swap                   | proc/swaps | Filename\\n/dev/sda2 partition 1 0 -2 | - | - | 1 area | swapoff -a",
        "NUMA balancing         | proc/sys/kernel/numa_balancing | 1 | - | - | on | numa_balancing=0",
        "max realtime priority  | proc/self/limits | Max realtime priority     0                    0 | - | - | 0 | "
            + "rtprio 99",
        "max locked memory      | proc/self/limits | Max locked memory         65536                65536 bytes | - "
            + "| - | 65536 | memlock",
        "max locked memory      | proc/self/limits | Max locked memory         67108864             67108864 bytes | - "
            + "| - | 67108864 | memlock unlimited",
        "max open files         | proc/self/limits | Max open files            256                  256 files | - | "
            + "- | 256 | nofile",
        "group gpuseg           | etc/group | gpuseg:x:997: | - | - | this user is no member | adduser USER gpuseg",
        "group gpuseg           | etc/group | video:x:44: | - | - | does not exist | groupadd --system gpuseg",
        "power mode             | var/lib/nvpmodel/status | pmode:0002 | - | - | pmode:0002 | nvpmodel -m 0",
        "GPU sharing            | tmp/nvidia-mps/control | '' | - | - | MPS runs | nvidia-cuda-mps-control",
    })
    void shouldNameValueAndRemedyOfWhatIsNotWell(final String name, final String path, final String text, final String
        path2,
        final String text2, final String found, final String remedy) throws IOException {
        put(path, text);
        if (path2 != null) {
            put(path2, text2);
        }
        final DoctorCheck check = look(CPU).get(name);
        assertEquals(Verdict.ADVICE, check.verdict(), check.toString());
        assertTrue(check.found().contains(found), check.toString());
        assertTrue(check.remedy().contains(remedy), check.toString());
    }

    @Test
    void shouldNoticeWhatIsMissing() throws IOException {
        Files.delete(root.resolve("run/nvidia-persistenced/socket"));
        Files.delete(root.resolve("etc/systemd/system/multi-user.target.wants/gpuseg.service"));
        final Map<String, DoctorCheck> seen = look(CPU);
        assertEquals(Verdict.ADVICE, seen.get("GPU persistence").verdict());
        assertEquals("installed, not enabled", seen.get("systemd unit").found());
        assertEquals("systemctl enable --now gpuseg", seen.get("systemd unit").remedy());
    }

    @Test
    void shouldNameWhatTakesTheDriversLock() throws IOException {
        assertTrue(look(CPU).get("driver's lock").found().contains("as NVIDIA ships it"), look(CPU).toString());
        put("proc/4711/comm", "nvidia-smi");
        put("proc/4712/comm", "training");
        put("proc/4712/cgroup", "0::/robot/worker");
        put("sys/fs/cgroup/robot/cpu.max", "50000 100000");
        put("proc/4713/comm", "shell");
        put("proc/4713/cgroup", "0::/robot/worker");
        Files.createDirectories(root.resolve("proc/4712/fd"));
        Files.createSymbolicLink(root.resolve("proc/4712/fd/7"), Path.of("/dev/nvidiactl"));
        final Map<String, DoctorCheck> seen = look(CPU);
        assertEquals("nvidia-smi (pid 4711)", seen.get("GPU monitors").found());
        assertEquals(Verdict.ADVICE, seen.get("GPU monitors").verdict());
        assertEquals("training (pid 4712)", seen.get("cpu.max of GPU processes").found());
        assertEquals(Verdict.ADVICE, seen.get("cpu.max of GPU processes").verdict());
        put("sys/fs/cgroup/robot/cpu.max", "max 100000");
        put("proc/driver/nvidia/params", "RegistryDwords: \"RmRoApiLock=0x3fe\"");
        assertEquals("none", look(CPU).get("cpu.max of GPU processes").found());
        assertTrue(look(CPU).get("driver's lock").found().startsWith("RmRoApiLock is set"));
    }

    @Test
    void shouldLookAtTheIsolatedCpusWhereNoneIsChosen() throws IOException {
        put("proc/irq/19/effective_affinity_list", "2");
        assertTrue(look(-1).get("interrupts").found().contains("1 may arrive on CPU 2,3: 19"), look(-1).toString());
        put(SYSTEM + "isolated", "");
        assertEquals(Verdict.OK, look(-1).get("interrupts").verdict());
        assertEquals("none", look(-1).get("isolated CPUs").found());
    }

    @Test
    void shouldSaySomethingAboutAMachineThatShowsNothing(@TempDir final Path empty) {
        for (final DoctorCheck check : new RealTimeHygiene(empty, -1).checks()) {
            assertFalse(check.found().isEmpty(), check.toString());
        }
    }

    /** Numbers in the real /proc/sys are not read like those in a temporary directory. */
    @Test
    void shouldReadThisMachinesOwnSettings() throws IOException {
        final Process cat = new ProcessBuilder("cat", "/proc/sys/kernel/sched_rt_runtime_us").start();
        final String runtime = new String(cat.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1).trim();
        assumeFalse(runtime.isEmpty(), "no kernel with real-time throttling");
        final String found = new RealTimeHygiene(Path.of("/"), -1).checks().stream()
            .filter(check -> check.name().equals("real-time throttling")).findFirst().orElseThrow().found();
        assertTrue(runtime.equals("-1") ? found.equals("off") : found.contains(" " + runtime + " us of "), found);
    }
}
