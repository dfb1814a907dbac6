/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.launch;

import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.rta.CoreOrder;
import dev.gpuseg.core.Unmanaged;
import dev.gpuseg.daemon.admission.AdmissionMode;
import dev.gpuseg.daemon.admission.AdmissionSettings;
import dev.gpuseg.daemon.admission.ProfileMachine;
import dev.gpuseg.daemon.cgroup.LiveRules;
import dev.gpuseg.daemon.conductor.UserLimits;
import dev.gpuseg.daemon.process.SiteRules;
import dev.gpuseg.mechanisms.Protection;
import dev.gpuseg.mechanisms.nvidia.NvidiaMachine;
import dev.gpuseg.mechanisms.observer.ObserverMode;
import java.nio.file.Path;
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

    @Option(names = "--cgroup-rules", paramLabel = "FILE",
        description = "Protection, weights, caps and highest priorities of control groups by path, from this file. It "
            + "is read again when it changes; a file that is refused changes nothing.")
    private Path cgroupRules;

    /**
     * What was asked for.
     *
     * @param keys     what the settings file says besides
     * @param problems takes what is refused
     * @return the rules; null if a value or a file is refused
     */
    SiteRules rules(final SettingKeys keys, final OptionProblems problems) {
        final AdmissionSettings proof = admission(keys, problems);
        final Unmanaged others = keys.unmanaged(problems);
        final Boolean allEngines = keys.allEngines(problems);
        final LiveRules groups = cgroupRules == null ? LiveRules.NONE
            : problems.in("--cgroup-rules", () -> LiveRules.of(cgroupRules));
        final UserLimits users = keys.limits(problems);
        final ObserverMode seen = keys.observer(problems);
        return problems.none() ? new SiteRules(proof, others, new Protection(Set.copyOf(keys.protect()), allEngines),
            groups, keys.clientsPerUser(), keys.tasksPerUser(), users, seen, -1) : null;
    }

    private AdmissionSettings admission(final SettingKeys keys, final OptionProblems problems) {
        final CoreOrder order = keys.coreOrder(problems);
        final AdmissionMode mode = problems.in("--admission", () -> AdmissionMode.named(admission));
        if (mode == AdmissionMode.OFF) {
            requireUnread("--taskset", taskSet, problems);
            requireUnread("--platform", platform, problems);
            return new AdmissionSettings(mode, null, null, order, keys.graceNs());
        }
        final TaskSet declared = taskSet == null ? null
            : problems.in("--taskset", () -> AdmissionSettings.declared(taskSet));
        final Platform constants = platform == null ? null
            : problems.in("--platform", () -> AdmissionSettings.constants(platform));
        if (mode == null || taskSet != null && declared == null || platform != null && constants == null) {
            return null;
        }
        if (platform != null || taskSet != null) {
            final String differs = ProfileMachine.difference(AdmissionSettings.measured(platform, taskSet),
                NvidiaMachine.modelNames(), NvidiaMachine.driverVersion());
            if (!differs.isEmpty() && mode == AdmissionMode.ENFORCE) {
                problems.add(platform == null ? "--taskset" : "--platform", differs);
            } else if (!differs.isEmpty()) {
                System.err.println("gpuseg: admission: every proof is conditional: " + differs);
            }
        }
        return problems.in(platform == null ? "--admission" : "--platform",
            () -> AdmissionSettings.of(mode, declared, constants, order, keys.graceNs()));
    }

    private static void requireUnread(final String option, final Path file, final OptionProblems problems) {
        if (file != null) {
            problems.add(option, option + " is read for admission only; add --admission warn or --admission enforce");
        }
    }
}
