/* SPDX-License-Identifier: Apache-2.0 */
package dev.gpuseg.analysis.model;

import java.util.List;

/**
 * Where a task set runs.
 *
 * @param cpus       number of CPU cores, 1..{@link #MAX_CPUS}; tasks name them 1..cpus
 * @param gpus       the GPUs in the order of their indices (from 0); possibly empty if no task uses one
 * @param optimistic true if begin returns at once where nothing could outrank the task (the daemon's default); it
 *                   changes where epsilon is paid, see {@code analysis/docs/window.md}
 * @param profile    name of the measured profile that the constants came from, or null
 * @param simulated  true if times or constants were measured on the virtual GPU: every report says so
 */
public record Platform(int cpus, List<Gpu> gpus, boolean optimistic, String profile, boolean simulated) {
    /** Most cores that a platform may have. */
    public static final int MAX_CPUS = 1024;

    /** Most GPUs that a platform may have. */
    public static final int MAX_GPUS = 64;

    /** Validates the ranges and copies the list. */
    public Platform {
        gpus = List.copyOf(gpus);
        if (cpus < 1 || cpus > MAX_CPUS) {
            throw new InvalidModelException("platform: cpus is " + cpus + "; it must be 1.." + MAX_CPUS);
        }
        if (gpus.size() > MAX_GPUS) {
            throw new InvalidModelException("platform: there are " + gpus.size() + " GPUs; at most " + MAX_GPUS
                + " are allowed");
        }
    }

    /**
     * A platform with nothing of the virtual GPU in it.
     *
     * @param cpus       as above
     * @param gpus       as above
     * @param optimistic as above
     * @param profile    as above
     */
    public Platform(final int cpus, final List<Gpu> gpus, final boolean optimistic, final String profile) {
        this(cpus, gpus, optimistic, profile, false);
    }

    /**
     * The caveat to show behind its name.
     *
     * @return ", SIMULATED GPU", or empty
     */
    public String caveat() {
        return simulated ? ", SIMULATED GPU" : "";
    }

    /**
     * One GPU, no profile, begins that wait.
     *
     * @param cpus number of cores
     * @param gpu  its constants
     * @return the platform
     */
    public static Platform of(final int cpus, final Gpu gpu) {
        return new Platform(cpus, List.of(gpu), false, null);
    }

    /**
     * The same platform with one epsilon for all GPUs.
     *
     * @param epsilonNs runlist update delay
     * @return the changed copy
     */
    public Platform withEpsilonNs(final long epsilonNs) {
        return new Platform(cpus, gpus.stream().map(g -> g.withEpsilonNs(epsilonNs)).toList(), optimistic, profile,
            simulated);
    }
}
