/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.mechanisms.MechanismVerdict;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Which rungs of the ladder this machine has, without touching any process but this one. */
public final class AmdSurvey {
    /**
     * One rung on one GPU.
     *
     * @param rung     which
     * @param possible whether it can be used
     * @param level    what it reaches where it can: 2 = running work drains first, 3 = it is switched out
     * @param reason   why it cannot and what would help; empty if it can
     */
    public record Step(Rung rung, boolean possible, int level, String reason) {
        static Step yes(final Rung rung, final int level) {
            return new Step(rung, true, level, "");
        }

        static Step no(final Rung rung, final String reason) {
            return new Step(rung, false, 0, reason);
        }
    }

    private static final Path OWN_STATUS = Path.of("/proc/self/status");
    private static final int CAP_SYS_PTRACE = 19;
    private static final int CAP_SYS_ADMIN = 21;
    private static final int CAP_CHECKPOINT_RESTORE = 40;
    private static final int MINOR_DBG_TRAP = 13;
    private static final int MINOR_CRIU = 7;
    private static final int DEACTIVATE = 2;
    private static final int INTERRUPT = 3;
    private static final int MES_SINCE = 11;
    private static final int SAVES_SINCE = 9;
    private static final int ENOENT = 2;
    private static final int SAVE = 2;
    private static final int HEX = 16;

    private AmdSurvey() {
    }

    /**
     * What works on this machine's GPUs.
     *
     * @return what all GPUs reach, 3 if none can be used
     */
    public static MechanismVerdict verdict() {
        return verdict(AmdSysfs.ofThisMachine());
    }

    static MechanismVerdict verdict(final AmdSysfs sysfs) {
        final List<AmdSysfs.Gpu> gpus = sysfs.gpus();
        if (gpus.isEmpty()) {
            return new MechanismVerdict(false, INTERRUPT,
                "no GPU in /sys/class/kfd/kfd/topology; load amdgpu on a machine with an AMD GPU");
        }
        final List<String> lines = new ArrayList<>();
        boolean good = true;
        int level = INTERRUPT;
        for (int i = 0; i < gpus.size(); i++) {
            final List<Step> ladder = ladder(sysfs, gpus.get(i));
            final Step chosen = chosen(ladder);
            good &= chosen != null;
            level = chosen == null ? level : Math.min(level, chosen.level());
            lines.add("GPU " + i + " (" + gpus.get(i).generation() + ", " + gpus.get(i).mode().word() + "): "
                + (chosen == null ? "none of the ways is possible: " : "by " + chosen.rung().word() + ", "
                    + chosen.rung().text() + ", level " + chosen.level()) + refused(ladder, chosen));
        }
        return new MechanismVerdict(good, level, String.join("; ", lines));
    }

    private static String refused(final List<Step> ladder, final Step chosen) {
        final String text = ladder.stream().filter(s -> chosen == null || s.rung().compareTo(chosen.rung()) < 0)
            .map(s -> s.rung().word() + ": " + s.reason()).collect(Collectors.joining("; "));
        return text.isEmpty() ? "" : chosen == null ? text : " (better ones are not possible: " + text + ")";
    }

    static Step chosen(final List<Step> ladder) {
        return ladder.stream().filter(Step::possible).findFirst().orElse(null);
    }

    /** All rungs, best first. */
    static List<Step> ladder(final AmdSysfs sysfs, final AmdSysfs.Gpu gpu) {
        final String never = neverPossible(gpu);
        if (never != null) {
            final List<Step> none = new ArrayList<>();
            for (final Rung rung : Rung.values()) {
                none.add(Step.no(rung, never));
            }
            return none;
        }
        final int level = gpu.major() >= SAVES_SINCE && sysfs.savesWaves() ? INTERRUPT : DEACTIVATE;
        return List.of(device(gpu), debugger(gpu, level), pause(sysfs, gpu, level), agent(sysfs, gpu, level));
    }

    private static String neverPossible(final AmdSysfs.Gpu gpu) {
        return gpu.mode() == AmdSysfs.Mode.NO_HWS && gpu.major() >= MES_SINCE
            ? "amdgpu.sched_policy=2 (NO_HWS) on " + gpu.generation() + ": unloading a queue does not preempt there, "
                + "and gfx12 has no such functions; load amdgpu with sched_policy=0" : null;
    }

    private static Step device(final AmdSysfs.Gpu gpu) {
        final int probe = HoldDevice.probe();
        if (probe != 0) {
            return Step.no(Rung.KFD, probe == -ENOENT ? HoldDevice.PATH
                + " is missing; patch the kernel (kmod-patch/amdkfd)" : probe < 0 ? HoldDevice.PATH
                    + " cannot be opened (errno " + -probe + "); run as root (CAP_SYS_ADMIN)" : HoldDevice.PATH
                        + " speaks ABI " + probe + ", this daemon " + HoldDevice.ABI
                        + "; build both from the same sources");
        }
        final HoldDevice.GpuState state = HoldDevice.state(gpu.gpuId());
        if (state == null) {
            return Step.no(Rung.KFD, HoldDevice.PATH + " does not know GPU id " + gpu.gpuId());
        }
        if (state.preemption() == 0) {
            return Step.no(Rung.KFD, HoldDevice.PATH + " refuses to hold on this GPU (reason " + state.reason() + ")");
        }
        return Step.yes(Rung.KFD, state.preemption() == SAVE ? INTERRUPT : DEACTIVATE);
    }

    private static Step debugger(final AmdSysfs.Gpu gpu, final int level) {
        if (gpu.mode() == AmdSysfs.Mode.NO_HWS) {
            return Step.no(Rung.DEBUG, "DBG_TRAP is refused in mode NO_HWS (amdgpu.sched_policy=2)");
        }
        final String reason = driver(MINOR_DBG_TRAP, "6.5");
        return reason == null ? Step.yes(Rung.DEBUG, level) : Step.no(Rung.DEBUG, reason);
    }

    private static Step pause(final AmdSysfs sysfs, final AmdSysfs.Gpu gpu, final int level) {
        final int gpus = sysfs.gpus().size();
        if (gpus > 1) {
            return Step.no(Rung.CRIU, "it pauses a process on all GPUs at once, and this machine has " + gpus);
        }
        final String reason = driver(MINOR_CRIU, "5.18");
        if (reason != null) {
            return Step.no(Rung.CRIU, reason);
        }
        return has(CAP_SYS_ADMIN) || has(CAP_CHECKPOINT_RESTORE) ? Step.yes(Rung.CRIU, level)
            : Step.no(Rung.CRIU, "CAP_CHECKPOINT_RESTORE is missing; run as root");
    }

    private static Step agent(final AmdSysfs sysfs, final AmdSysfs.Gpu gpu, final int level) {
        if (sysfs.gpus().indexOf(gpu) >= AgentPage.SLOTS) {
            return Step.no(Rung.AGENT, "it is for " + AgentPage.SLOTS + " GPUs");
        }
        return has(CAP_SYS_PTRACE) ? Step.yes(Rung.AGENT, level)
            : Step.no(Rung.AGENT, "CAP_SYS_PTRACE is missing, for the page by which applications are told; run as "
                + "root");
    }

    /** Null if the driver is new enough and processes can be traced. */
    private static String driver(final int minor, final String kernel) {
        final int fd = AmdCalls.open(KfdFile.PATH);
        if (fd < 0) {
            return KfdFile.PATH + " cannot be opened (errno " + -fd + "); run as root or in group render";
        }
        final int version = KfdFile.version(fd);
        AmdCalls.close(fd);
        if (version < minor) {
            return "KFD 1." + minor + " is needed (Linux " + kernel + "), this one "
                + (version < 0 ? "does not tell its version (errno " + -version + ")" : "is 1." + version);
        }
        return has(CAP_SYS_PTRACE) ? null : "CAP_SYS_PTRACE is missing; run as root";
    }

    private static boolean has(final int capability) {
        try {
            for (final String line : Files.readString(OWN_STATUS, StandardCharsets.ISO_8859_1).split("\n")) {
                if (line.startsWith("CapEff:")) {
                    final long all = Long.parseUnsignedLong(line.substring(line.indexOf(':') + 1).strip(), HEX);
                    return (all >>> capability & 1) == 1;
                }
            }
        } catch (final IOException e) {
            return false;   // no /proc: what needs it is refused
        }
        return false;
    }
}
