/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import java.io.IOException;
import java.nio.file.Path;

/**
 * What admission works from.
 *
 * @param mode     what follows from a task that is not accepted
 * @param declared the tasks of the site, matched by name; null if there is no file
 * @param platform constants of this machine; null only if {@code mode} is {@link AdmissionMode#OFF}
 * @param cores    how the kernel orders the threads of a core
 * @param graceNs  how long after a restart a place is kept for a task that was admitted before, ns, 0 = not at all
 */
public record AdmissionSettings(AdmissionMode mode, TaskSet declared, Platform platform, CoreOrder cores,
    long graceNs) {
    /** Usual time for which places are kept after a restart: 30 s. */
    public static final long GRACE_NS = 30_000_000_000L;
    /** No admission test. */
    public static final AdmissionSettings OFF =
        new AdmissionSettings(AdmissionMode.OFF, null, null, CoreOrder.FP, GRACE_NS);

    /** Refuses a test without a platform. */
    public AdmissionSettings {
        if (mode != AdmissionMode.OFF && platform == null) {
            throw new IllegalArgumentException("--admission " + mode.word() + " needs the constants of this machine; "
                + "give --platform PROFILE, or --taskset FILE (its platform counts)");
        }
    }

    /**
     * Reads the files.
     *
     * @param mode     what follows from a task that is not accepted
     * @param taskSet  task-set file, or null
     * @param platform platform profile, which comes before the platform of the task set, or null
     * @param cores    how the kernel orders the threads of a core
     * @param graceNs  how long places are kept after a restart, ns
     * @return the settings
     * @throws IllegalArgumentException if a file is refused or missing, with one line of why
     */
    public static AdmissionSettings read(final AdmissionMode mode, final Path taskSet, final Path platform,
        final CoreOrder cores, final long graceNs) {
        if (mode == AdmissionMode.OFF) {
            if (taskSet != null || platform != null) {
                throw new IllegalArgumentException("--taskset and --platform are read for admission only; add "
                    + "--admission warn or --admission enforce");
            }
            return new AdmissionSettings(mode, null, null, cores, graceNs);
        }
        try {
            TaskSet declared = taskSet == null ? null : new TaskSetReader().read(taskSet);
            Platform constants = declared == null ? null : declared.platform();
            if (platform != null) {
                constants = new TaskSetReader().readPlatform(platform);
                if (constants.coRunPercent() == 0 && declared != null) {
                    constants = constants.withCoRunPercent(declared.platform().coRunPercent());
                }
                declared = declared == null ? null : declared.withPlatform(constants);
            }
            return new AdmissionSettings(mode, declared, constants, cores, graceNs);
        } catch (final IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        } catch (final dev.gpuseg.analysis.model.InvalidModelException e) {
            throw new IllegalArgumentException("--taskset " + taskSet + " on --platform " + platform + ": "
                + e.getMessage(), e);
        }
    }

    /**
     * What threads do while the GPU works for them.
     *
     * @return the mode of the declared set; suspend if there is none
     */
    public WaitMode waitMode() {
        return declared == null ? WaitMode.SUSPEND : declared.mode();
    }
}
