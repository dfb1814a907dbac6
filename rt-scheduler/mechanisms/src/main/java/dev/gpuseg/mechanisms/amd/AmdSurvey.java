/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.mechanisms.amd;

import dev.gpuseg.ipc.platform.Errno;
import dev.gpuseg.mechanisms.Capabilities;
import dev.gpuseg.mechanisms.MachineFiles;
import dev.gpuseg.mechanisms.MechanismVerdict;
import dev.gpuseg.mechanisms.Privilege;
import dev.gpuseg.mechanisms.SelftestResult;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/** Says which {@link ControlInterface}s this machine has. Touches no process but this one. */
public final class AmdSurvey {
    /**
     * One interface on one GPU.
     *
     * @param by     which
     * @param level  what it reaches: 2 = running work ends first, 3 = it is interrupted; 0 if it is not usable
     * @param reason why it is not usable and what would help; empty if it is
     */
    record Candidate(ControlInterface by, int level, String reason) {
        Candidate {
            level = reason.isEmpty() ? level : 0;
        }

        static Candidate refused(final ControlInterface by, final String reason) {
            return new Candidate(by, 0, reason);
        }

        boolean usable() {
            return reason.isEmpty();
        }
    }

    private static final int MES_SINCE = 11;
    private static final int SAVES_SINCE = 9;
    private static final int SAVE = 2;

    private AmdSurvey() {
    }

    /** Whether the driver answers, and no stand-in; true unless this process was started with a stand-in. */
    public static boolean isRealDriver() {
        return !AmdCalls.DRIVER.isReplaced();
    }

    /** How many GPUs KFD lists; 0 = none. */
    public static int gpus() {
        return AmdSysfs.ofThisMachine().gpus().size();
    }

    /** The driver's own version; where it is the kernel's, that. */
    public static String driverVersion() {
        final String own = AmdSysfs.ofThisMachine().driverVersion();
        return own.isEmpty() ? MachineFiles.kernelVersion() : own;
    }

    /** Such as gfx9.4.2, of each GPU. */
    public static List<String> generations() {
        return AmdSysfs.ofThisMachine().gpus().stream().map(AmdSysfs.Gpu::generation).toList();
    }

    /** What works on this machine's GPUs; the level that all GPUs reach, 3 if none can be used. */
    public static MechanismVerdict verdict() {
        return SelftestResult.correct("amd", verdict(AmdSysfs.ofThisMachine()));
    }

    static MechanismVerdict verdict(final AmdSysfs sysfs) {
        final List<AmdSysfs.Gpu> gpus = sysfs.gpus();
        if (gpus.isEmpty()) {
            return new MechanismVerdict(false, Capabilities.INTERRUPT,
                "no GPU in /sys/class/kfd/kfd/topology; load amdgpu on a machine with an AMD GPU");
        }
        final List<String> lines = new ArrayList<>();
        boolean usable = true;
        int level = Capabilities.INTERRUPT;
        for (int i = 0; i < gpus.size(); i++) {
            final List<Candidate> candidates = candidates(sysfs, gpus.get(i));
            final Candidate best = best(candidates);
            usable &= best != null;
            level = best == null ? level : Math.min(level, best.level());
            lines.add("GPU " + i + " (" + gpus.get(i).generation() + ", " + gpus.get(i).mode().word() + "): "
                + text(candidates, best));
        }
        return new MechanismVerdict(usable, level, String.join("; ", lines));
    }

    private static String text(final List<Candidate> candidates, final Candidate best) {
        final String refused = candidates.stream().filter(c -> best == null || c.by().compareTo(best.by()) < 0)
            .map(c -> c.by().label() + ": " + c.reason()).collect(Collectors.joining("; "));
        return best == null ? "no interface is usable: " + refused
            : "by " + best.by().label() + ", " + best.by().description() + ", level " + best.level()
                + (refused.isEmpty() ? "" : " (better interfaces are not usable: " + refused + ")");
    }

    /** The first that is usable, null if none is. */
    static Candidate best(final List<Candidate> candidates) {
        return candidates.stream().filter(Candidate::usable).findFirst().orElse(null);
    }

    /** All interfaces, best first. */
    static List<Candidate> candidates(final AmdSysfs sysfs, final AmdSysfs.Gpu gpu) {
        final boolean never = gpu.mode() == AmdSysfs.Mode.NO_HWS && gpu.major() >= MES_SINCE;
        final int level = gpu.major() >= SAVES_SINCE && sysfs.savesWaves() ? Capabilities.INTERRUPT
            : Capabilities.DEACTIVATE;
        final List<Candidate> all = new ArrayList<>();
        for (final ControlInterface by : ControlInterface.values()) {
            if (never) {
                all.add(Candidate.refused(by, "amdgpu.sched_policy=2 (NO_HWS) on " + gpu.generation()
                    + ": unloading a queue does not preempt there, and gfx12 has no such functions; load amdgpu with "
                    + "sched_policy=0"));
            } else if (by == ControlInterface.KFD) {
                all.add(patchedKfd(gpu));
            } else {
                all.add(new Candidate(by, level, agentRefusal(sysfs, gpu)));
            }
        }
        return all;
    }

    private static Candidate patchedKfd(final AmdSysfs.Gpu gpu) {
        final String path = PatchedKfdControl.PATH;
        final int probe = PatchedKfdControl.probe();
        if (probe != 0) {
            return Candidate.refused(ControlInterface.KFD, path
                + (probe == -Errno.ENOENT ? " is missing; patch the kernel (kmod-patch/amdkfd)"
                    : probe < 0 ? " cannot be opened (errno " + -probe + "); run as root (CAP_SYS_ADMIN)"
                        : " has ABI " + probe + ", this daemon " + PatchedKfdControl.ABI
                            + "; build both from the same sources"));
        }
        final PatchedKfdControl.GpuState state = PatchedKfdControl.state(gpu.gpuId());
        if (state == null || state.preemption() == 0) {
            return Candidate.refused(ControlInterface.KFD, path + (state == null
                ? " does not know GPU id " + gpu.gpuId()
                : " refuses to hold on this GPU (reason " + state.reason() + ")"));
        }
        return new Candidate(ControlInterface.KFD, state.preemption() == SAVE ? Capabilities.INTERRUPT
            : Capabilities.DEACTIVATE, "");
    }

    /** Why applications cannot be asked to change their queues; empty if they can. */
    private static String agentRefusal(final AmdSysfs sysfs, final AmdSysfs.Gpu gpu) {
        return sysfs.gpus().indexOf(gpu) >= AgentPage.SLOTS ? "it supports " + AgentPage.SLOTS + " GPUs"
            : Privilege.SYS_PTRACE.held() ? "" : "CAP_SYS_PTRACE is missing; run as root";
    }
}
