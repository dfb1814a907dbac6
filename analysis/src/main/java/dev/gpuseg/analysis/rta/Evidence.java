/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.rta;

import java.util.Set;

/** How somebody finds out whether a hypothesis holds on his machine: a command, or a counter of the daemon. */
final class Evidence {
    /** Those that the daemon, or a recording of it, shows to be broken. */
    private static final Set<Hypothesis> WATCHED = Set.of(Hypothesis.M0, Hypothesis.M1, Hypothesis.M2, Hypothesis.M11,
        Hypothesis.N1, Hypothesis.P1, Hypothesis.W1);

    private Evidence() {
    }

    static boolean isWatched(final Hypothesis hypothesis) {
        return WATCHED.contains(hypothesis);
    }

    /** One clause; never empty. */
    static String of(final Hypothesis hypothesis) {
        return switch (hypothesis) {
            case M0, W1 -> "`gpuseg trace check RECORDING --taskset SET` compares arrivals and times; counter overruns";
            case M1, P1 -> "`gpuseg trace check --decisions` decides a recording again";
            case G4 -> "`gpuseg status` lists who is registered, `fuser -v /dev/nvidia*` who uses the GPU";
            case M2 -> "gpuseg_enforcement_seconds, alert GpusegEnforcementSlow";
            case M3 -> "`gpuseg status` shows protected contexts, which are never disabled; counter mechanism_errors";
            case M4 -> "`chrt -a -p PID` and `taskset -a -p PID` of each task; `gpuseg doctor`";
            case M5 -> "`top -H -p PID`: a thread that sleeps uses no CPU while the GPU works for it";
            case M6, M10 -> "checked for the set";
            case M7 -> "`chrt -a -p PID` of best-effort programs, `taskset -a -p PID` of the daemon; `gpuseg doctor`";
            case M8 -> "`gpuseg status --json`: boost of each task";
            case M9 -> "under `gpuseg exec` every launch is in a window; other programs: by their source";
            case M11 -> "counters stalls and watchdog_releases, gauge max_cycle_ns";
            case M12 -> "by the source of the task: what it waits for outside of its windows is declared as blocking";
            case N1 -> "gpu_contexts of `gpuseg status --json` counts contexts that were made (observer)";
            case K1 -> "`nvidia-smi -q -d CLOCK,PERFORMANCE` shows the clock and what lowers it";
            case T1 -> "`gpuseg doctor`, line real-time throttling; `sysctl kernel.sched_rt_runtime_us`";
            case S1 -> "`dmesg` shows resets and Xid errors, `nvidia-smi -q -d PERFORMANCE` throttling";
            case B1, B2 -> "by the kernels of the programs inside, measured beside each other";
            case B3 -> "`gpuseg status` names the programs that use the GPU outside of the space";
            case U1 -> "no task has GPUSEG_TASK_ALWAYS_WAIT; `gpuseg status --json`: optimistic";
            case U2 -> "the device decides it; seen on H100 and H200 only";
            case U3 -> "`gpuseg status`: the process that has the turn counts, the one that is next, and those that "
                + "are idle or younger than 2 s, if they can have work, each as often as it has channel groups";
            case U4 -> "by the source of the task: its kernels are one graph, or launched ahead of the GPU";
            case U5 -> "sharing: turns, policy fp (classes where turns say together), mechanism nvidia, one GPU, no "
                + "limited share of its user, a budget of at least the bound; `gpuseg status --json`: "
                + "admission.begins is turns";
            case U6 -> "the driver decides it; a call took 240us on an H200, so theta must be at least that there";
            case E1 -> "by the source of the task: it marks its release (gpuseg_job, a period)";
            case E2 -> "`chrt -p PID` shows SCHED_DEADLINE, runtime, deadline and period";
            case E3 -> "deadlines are nanoseconds of a clock";
        };
    }
}
