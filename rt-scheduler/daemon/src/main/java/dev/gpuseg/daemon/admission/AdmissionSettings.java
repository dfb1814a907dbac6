/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.daemon.admission;

import com.fasterxml.jackson.databind.JsonNode;
import dev.gpuseg.analysis.io.TaskSetReader;
import dev.gpuseg.analysis.model.InvalidModelException;
import dev.gpuseg.analysis.model.Platform;
import dev.gpuseg.analysis.model.TaskSet;
import dev.gpuseg.analysis.model.WaitMode;
import dev.gpuseg.analysis.rta.CoreOrder;
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
     * What follows from files.
     *
     * @param mode     what follows from a task that is not accepted
     * @param declared the tasks of the site, or null
     * @param profile  constants of this machine, which come before those of the task set, or null
     * @param cores    how the kernel orders the threads of a core
     * @param graceNs  how long places are kept after a restart, ns
     * @return the settings
     * @throws IllegalArgumentException if there are no constants, or the task set does not fit them, with one line
     */
    public static AdmissionSettings of(final AdmissionMode mode, final TaskSet declared, final Platform profile,
        final CoreOrder cores, final long graceNs) {
        if (declared == null || profile == null) {
            return new AdmissionSettings(mode, declared, declared == null ? profile : declared.platform(), cores,
                graceNs);
        }
        final Platform own = declared.platform();
        final Platform constants = (profile.space().isNone() ? profile.withSpace(own.space())
            : profile).withLimits(profile.limits().over(own.limits()));
        try {
            return new AdmissionSettings(mode, declared.withPlatform(constants), constants, cores, graceNs);
        } catch (final InvalidModelException e) {
            throw new IllegalArgumentException("the task set of --taskset on this --platform: " + e.getMessage(), e);
        }
    }

    /**
     * Reads a task-set file.
     *
     * @param file the file
     * @return the tasks of the site
     * @throws IllegalArgumentException if it is refused or missing, with one line of why
     */
    public static TaskSet declared(final Path file) {
        try {
            return new TaskSetReader().read(file);
        } catch (final IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * Reads a platform profile.
     *
     * @param file the file
     * @return the constants of this machine
     * @throws IllegalArgumentException if it is refused or missing, with one line of why
     */
    public static Platform constants(final Path file) {
        try {
            return new TaskSetReader().readPlatform(file);
        } catch (final IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    /**
     * What is said of the measurement of the constants that count.
     *
     * @param profile a platform profile, or null
     * @param set     a task-set file, which counts where there is no profile, or null
     * @return as {@code gpuseg calibrate} wrote it; null if nothing is said
     * @throws IllegalArgumentException if it is refused or missing, with one line of why
     */
    public static JsonNode measured(final Path profile, final Path set) {
        final TaskSetReader reader = new TaskSetReader();
        try {
            if (profile != null) {
                reader.readPlatform(profile);
            } else if (set != null) {
                reader.read(set);
            }
        } catch (final IOException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
        return reader.platformOrigin() == null ? null : reader.platformOrigin().measured();
    }

    /** What threads do while the GPU works for them: the mode of the declared set; suspend if there is none. */
    public WaitMode waitMode() {
        return declared == null ? WaitMode.SUSPEND : declared.mode();
    }
}
