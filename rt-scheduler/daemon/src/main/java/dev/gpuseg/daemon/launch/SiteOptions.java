/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.command.DurationConverter;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.AdmissionMode;
import dev.gpuseg.daemon.admission.AdmissionSettings;
import dev.gpuseg.daemon.admission.CoreOrder;
import dev.gpuseg.daemon.cgroup.LiveRules;
import dev.gpuseg.daemon.conductor.UserLimits;
import dev.gpuseg.daemon.process.SiteRules;
import dev.gpuseg.ipc.Abi;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import picocli.CommandLine.Option;

/** Options of {@code run} by which an administrator rules over users: admission, protection, quotas. */
public final class SiteOptions {
    @Option(names = "--admission", paramLabel = "off|warn|enforce", defaultValue = "off",
        description = "Analyse every task before it is opened, together with all open tasks: warn reports what is not "
            + "proven, enforce refuses it (default: ${DEFAULT-VALUE}).")
    private String admission;

    @Option(names = "--taskset", paramLabel = "FILE",
        description = "Tasks of this machine with their cores and segments, matched by name (the format of `gpuseg "
            + "analyze`). A task that is not in the file is analysed by its budget and period, or refused.")
    private Path taskSet;

    @Option(names = "--platform", paramLabel = "PROFILE",
        description = "Constants of this machine (cpus, epsilon, theta, ...) as `gpuseg calibrate` writes them, "
            + "instead of those of --taskset.")
    private Path platform;

    @Option(names = "--core-order", paramLabel = "fp|edf", defaultValue = "fp",
        description = "How the kernel orders the threads of a core: fp for SCHED_FIFO, edf for SCHED_DEADLINE "
            + "(default: ${DEFAULT-VALUE}).")
    private String cores;

    @Option(names = "--admission-grace", paramLabel = "DURATION", converter = DurationConverter.class,
        defaultValue = "30s",
        description = "How long after a restart the place of a task that was admitted before is reserved, 0s..1h "
            + "(default: ${DEFAULT-VALUE}).")
    private Duration grace;

    @Option(names = "--unmanaged", paramLabel = "best-effort|allow", defaultValue = "best-effort",
        description = "Processes that never registered: best-effort disables them while a real-time task uses the "
            + "GPU, allow leaves them alone (default: ${DEFAULT-VALUE}).")
    private String unmanaged;

    @Option(names = "--observer", paramLabel = "auto|on|off", defaultValue = "auto",
        description = "See processes that use a GPU by a BPF program, as they do it: auto if that works here, on or "
            + "refuse to start, off to scan (default: ${DEFAULT-VALUE}). `gpuseg doctor` says whether it works. "
            + "Mechanisms nvidia, amd and tegra use it; with the others it is of no use.")
    private String observer;

    @Option(names = "--protect", paramLabel = "NAME", split = ",",
        description = "Never disable processes that run these programs of root or of the daemon's user, in addition "
            + "to display servers and the driver's services.")
    private List<String> protect = List.of();

    @Option(names = "--nvidia-scope", paramLabel = "compute|all", defaultValue = "compute",
        description = "What is disabled of a process on NVIDIA: compute (with graphics), or all (also copies) "
            + "(default: ${DEFAULT-VALUE}).")
    private String nvidiaScope;

    @Option(names = "--cgroup-rules", paramLabel = "FILE",
        description = "Protection, weights, caps and highest priorities of control groups by path, from this file. It "
            + "is read again when it changes; a file that is refused changes nothing.")
    private Path cgroupRules;

    @Option(names = "--clients-per-user", paramLabel = "N", defaultValue = "64",
        description = "Maximum number of registered processes of one user, 1..256 (default: ${DEFAULT-VALUE}).")
    private int clientsPerUser;

    @Option(names = "--tasks-per-user", paramLabel = "N", defaultValue = "1024",
        description = "Maximum number of open tasks of one user, 1..16384 (default: ${DEFAULT-VALUE}).")
    private int tasksPerUser;

    @Option(names = "--limits", paramLabel = "DIR", defaultValue = "/etc/gpuseg/limits.d",
        description = "Limits of users and groups (highest priority, budget, utilization, tasks, clients), from the "
            + "files *.conf of this directory. Built in: priorities up to 49 and a budget of 200ms; up to 99 without a "
            + "budget for group gpuseg-rt. Root and the daemon's user have no limit (default: ${DEFAULT-VALUE}).")
    private Path limits;

    /**
     * What was asked for.
     *
     * @param problems takes what is refused
     * @return the rules; null if a value or a file is refused
     */
    SiteRules rules(final OptionProblems problems) {
        problems.isIn("--clients-per-user", clientsPerUser, 1, Abi.CLIENTS_MAX);
        problems.isIn("--tasks-per-user", tasksPerUser, 1, Abi.CLIENTS_MAX * Abi.SLOTS_MAX);
        final AdmissionSettings proof = admission(problems);
        final Unmanaged others = problems.in("--unmanaged", this::unmanaged);
        final Boolean allEngines = problems.in("--nvidia-scope", this::allEngines);
        final LiveRules groups = cgroupRules == null ? LiveRules.NONE
            : problems.in("--cgroup-rules", () -> LiveRules.of(cgroupRules));
        final UserLimits users = problems.in("--limits", () ->
            limits.equals(UserLimits.DIRECTORY) && !Files.exists(limits) ? UserLimits.builtIn()
                : UserLimits.read(limits));
        final ObserverMode seen = problems.in("--observer", () -> ObserverMode.named(observer));
        return problems.none() ? new SiteRules(proof, others, new Protection(Set.copyOf(protect), allEngines), groups,
            clientsPerUser, tasksPerUser, users, seen) : null;
    }

    private AdmissionSettings admission(final OptionProblems problems) {
        if (grace.compareTo(Duration.ofHours(1)) > 0) {
            problems.add("--admission-grace", "--admission-grace is " + grace.toSeconds() + "s; use 0s..3600s");
        }
        final CoreOrder order = problems.in("--core-order", () -> CoreOrder.named(cores));
        final AdmissionMode mode = problems.in("--admission", () -> AdmissionMode.named(admission));
        if (mode == AdmissionMode.OFF) {
            requireUnread("--taskset", taskSet, problems);
            requireUnread("--platform", platform, problems);
            return new AdmissionSettings(mode, null, null, order, grace.toNanos());
        }
        final TaskSet declared = taskSet == null ? null
            : problems.in("--taskset", () -> AdmissionSettings.declared(taskSet));
        final Platform constants = platform == null ? null
            : problems.in("--platform", () -> AdmissionSettings.constants(platform));
        if (mode == null || taskSet != null && declared == null || platform != null && constants == null) {
            return null;
        }
        return problems.in(platform == null ? "--admission" : "--platform",
            () -> AdmissionSettings.of(mode, declared, constants, order, grace.toNanos()));
    }

    private static void requireUnread(final String option, final Path file, final OptionProblems problems) {
        if (file != null) {
            problems.add(option, option + " is read for admission only; add --admission warn or --admission enforce");
        }
    }

    private Unmanaged unmanaged() {
        return switch (unmanaged) {
            case "best-effort" -> Unmanaged.BEST_EFFORT;
            case "allow" -> Unmanaged.ALLOW;
            default -> throw new IllegalArgumentException("--unmanaged is " + unmanaged
                + "; use best-effort or allow");
        };
    }

    private boolean allEngines() {
        return switch (nvidiaScope) {
            case "compute" -> false;
            case "all" -> true;
            default -> throw new IllegalArgumentException("--nvidia-scope is " + nvidiaScope
                + "; use compute or all");
        };
    }
}
